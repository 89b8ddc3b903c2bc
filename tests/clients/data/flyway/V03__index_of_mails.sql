CREATE UNIQUE INDEX by_mail ON customer (mail);
