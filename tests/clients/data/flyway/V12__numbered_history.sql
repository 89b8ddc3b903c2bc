DELETE FROM history;
INSERT INTO history (told) VALUES ('the only one');
ALTER TABLE history ADD COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST;
INSERT INTO history (told) VALUES ('two'), ('three');
