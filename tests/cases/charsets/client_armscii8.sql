-- Statements of a client in armscii8: names, comments and members with letters of its own.
CREATE DATABASE client_armscii8;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_armscii8"}]}
USE client_armscii8;
SET NAMES armscii8;
CREATE TABLE `armscii8 ԱաԲբԳ` (`armscii8 ԱաԲբԳ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ԱաԲբԳ' COMMENT 'ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ', e ENUM('ԱաԲբԳ', 'b')) COMMENT 'ԱաԲբԳ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_armscii8/armscii8%20%D4%B1%D5%A1%D4%B2%D5%A2%D4%B3"}]}
