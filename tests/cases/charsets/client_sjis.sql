-- Statements of a client in sjis: names, comments and members with letters of its own.
CREATE DATABASE client_sjis;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_sjis"}]}
USE client_sjis;
SET NAMES sjis;
CREATE TABLE `sjis ＡソチЫЯ` (`sjis ＡソチЫЯ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ＡソチЫЯ' COMMENT 'Ａ箪拜饅ｹﾐーＷｔけとみィズビリΛκЗац握暗移鰯卯嬰閲遠岡加華会蟹鈎楽椛勘漢関器季祇仇居協郷欽躯窪珪蛍訣研現股碁垢校行豪困沙災咲拶珊子脂滋執斜主周酬出順償招称上嘱慎仁水頗正戚雪煽然遡巣霜続楕逮鐸単段秩著脹槌吊碇哲堵冬当働篤呑尼猫覇培粕鉢板匪避弼苗布葡鮒並勉俸蓬紡堀鱒密明耗野友与要落律両燐隷魯麓丐亶佩伜傲儼冩刧辨匏厠吶哄啜嗄嚆囿垉毀壯奢娚嫐寃尹岾嵎已广弃彿怐恫惘愴憚懼扼挌捫摶擯敍旱暈朖枡桍梍椨楪樂橇櫟歡毟汳洸淆湶溥潯濛炬熕爰狎獨瑟瓰畤疱瘤皈眈瞠碎礇禺穰竚筌篌簷粨紕綺縒繩罍羣耘肆隋膰舊艾茵荼莽蒿蕘藏蚣蜀蝮蟠衢裘襌覺詬諢譖豐賈赳踟躄輕轤逋邁酩釵鋏鎔鑄閠阯隶霰鞋頤餉馭驀髟鬯鯏鰛鴦鵺鹽黠齠', e ENUM('ＡソチЫЯ', 'b')) COMMENT 'ＡソチЫЯ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_sjis/sjis%20%EF%BC%A1%E3%82%BD%E3%83%81%D0%AB%D0%AF"}]}
