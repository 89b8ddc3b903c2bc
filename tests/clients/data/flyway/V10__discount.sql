DELIMITER //
CREATE PROCEDURE discount (IN percent INT)
BEGIN
  UPDATE orders SET amount = amount * (100 - percent) / 100;
END //
DELIMITER ;
CALL discount(10);
