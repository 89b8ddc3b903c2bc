-- Statements of a client in gb18030: names, comments and members with letters of its own; statements of all kinds.
-- The leader shows no collation of a column that it made from a query, and the follower does.
-- @newer leader routines in JavaScript
-- @newer follower routines in JavaScript
-- @differs "client_gb18030.gb18030 乗乣俓俙僜 r" "client_gb18030.gb18030 乗乣俓俙僜 a"
CREATE DATABASE client_gb18030;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_gb18030"}]}
USE client_gb18030;
SET NAMES gb18030;
CREATE TABLE `gb18030 乗乣俓俙僜` (`gb18030 乗乣俓俙僜` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT '乗乣俓俙僜' COMMENT '乗踐仩倛僶刄匋呬喬嚧垳墑妅婹孁屶嵢幇彉悁慻扢掫撥斈暚枖梴榗橧欚氊浝湪潗瀢焇燛犾エд獇琫甂瘮摆甭勃硳磞礱禛额分妇功簬籾糩紺疥疽亢愧翃聁肳摸逆盼贫菫葐蒻蔛竖蒜淌筒螝蟼衖袿仰肄悠援諙謢譭豍伧龠谇郫軛輣辠週唧噗崦猥銚鋤錬鍴骘缱杩椐陱雟靅鞤黼钣锘穑駤騬骕鬇翮跸龇鳠鴩鷑黅凉ĭǝʄЇӴרܕࠋमચరඟཏჟᆄረዞᎺᑣᔇᖫᙏᜈᡏᤌᨱᯢᴑᶵẚὂₖⱭⴧㄴ㐙㒿㕣㘈㚮㝒㟶㢚㤿㧧㪌㬰㯕㱺㴟㷃㹧㼋㾯䁓䃸䆝䉁䋥䎊䐱䓕䕺䘞䛄䝪䠐䢴䥙䨇䪫䭏䯳䲘䵈鿓ꁷꄛꆿꉣꌇꎫꑏꔸꗜꚳꞌꡯꦘꪦꮖ걗곻궟깃껧꾋뀯냓녷눛늿덣됇뒫땏뗳뚗뜻럟뢃뤧맋멯묓뮷뱛볿붣빇뻫뾏쀳샗셻숟싃썧쐋쒯앓엷욛윿쟣좇줫짏쩳쬗쮻챟촃춧칋컯쾓퀷탛텿툣틇퍫퐏풳핗헻횟흃ퟷ廉縉טּﰁﲥﵛﺞﾫ', e ENUM('乗乣俓俙僜', 'b')) COMMENT '乗乣俓俙僜' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C"}]}
CREATE TABLE `gb18030 乗乣俓俙僜 q` SELECT '乗乣俓俙僜' AS `乗乣俓俙僜`, `gb18030 乗乣俓俙僜` FROM `gb18030 乗乣俓俙僜`;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20q"}]}
CREATE TEMPORARY TABLE `乗乣俓俙僜 t` (`乗乣俓俙僜` INT COMMENT '乗乣俓俙僜');
CREATE TABLE `gb18030 乗乣俓俙僜 l` LIKE `乗乣俓俙僜 t`;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20l"}]}
DROP TABLE IF EXISTS `乗乣俓俙僜 t`;
CREATE PROCEDURE `gb18030 乗乣俓俙僜`(`乗乣俓俙僜` INT, b ENUM('乗乣俓俙僜')) COMMENT '乗乣俓俙僜''\\\n' NO SQL SELECT '乗乣俓俙僜', `乗乣俓俙僜`;
-- -> {"affects":[{"action":"CreateProcedure","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C"}]}
CREATE FUNCTION `gb18030 乗乣俓俙僜`(a INT) RETURNS ENUM('乗乣俓俙僜') CHARSET utf8mb4 DETERMINISTIC COMMENT '乗乣俓俙僜' RETURN '乗乣俓俙僜';
-- -> {"affects":[{"action":"CreateFunction","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C"}]}
CREATE FUNCTION `gb18030 乗乣俓俙僜 j`(`乗乣俓俙僜` INT) RETURNS INT DETERMINISTIC LANGUAGE JAVASCRIPT AS 'return "乗乣俓俙僜"';
-- -> {"affects":[{"action":"CreateFunction","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20j"}]}
CREATE DEFINER=`乗乣俓俙僜`@`乗乣俓俙僜` TRIGGER `gb18030 乗乣俓俙僜` BEFORE INSERT ON `gb18030 乗乣俓俙僜` FOR EACH ROW SET @a = '乗乣俓俙僜';
-- -> {"affects":[{"action":"CreateTrigger","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C"}]}
CREATE DEFINER=`乗乣俓俙僜`@`乗乣俓俙僜` EVENT `gb18030 乗乣俓俙僜` ON SCHEDULE EVERY 1 DAY DISABLE COMMENT '乗乣俓俙僜' DO SELECT '乗乣俓俙僜';
-- -> {"affects":[{"action":"CreateEvent","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C"}]}
ALTER TABLE `gb18030 乗乣俓俙僜` ADD `乗乣俓俙僜 乗乣俓俙僜` INT DEFAULT (LENGTH('乗乣俓俙僜'));
-- -> {"affects":[{"action":"AlterTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C"}]}
RENAME TABLE `gb18030 乗乣俓俙僜 q` TO `gb18030 乗乣俓俙僜 r`;
-- -> {"affects":[{"action":"RenameTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20q","to":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20r"}]}
CREATE TABLE `gb18030 乗乣俓俙僜 d` (i INT);
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20d"}]}
DROP TABLE `gb18030 乗乣俓俙僜 d`;
-- -> {"affects":[{"action":"DropTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20d"}]}
SET sql_generate_invisible_primary_key = ON;
CREATE TABLE `gb18030 乗乣俓俙僜 g` (i INT COMMENT '乗乣俓俙僜');
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20g"}]}
SET sql_generate_invisible_primary_key = OFF, sql_mode = 'ANSI_QUOTES';
CREATE TABLE "gb18030 乗乣俓俙僜 a" SELECT '乗乣俓俙僜' AS "乗乣俓俙僜";
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20a"}]}
-- -> {"operation":{"Add":{}}}
CREATE VIEW "gb18030 乗乣俓俙僜 w" ("乗乣俓俙僜") AS SELECT "gb18030 乗乣俓俙僜" FROM "gb18030 乗乣俓俙僜";
-- -> {"affects":[{"action":"CreateView","uri":"flv://mysql-srv1/client_gb18030/gb18030%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C%20w"}]}
SET sql_mode = DEFAULT;
SET NAMES utf8mb4;
-- @apply
SELECT * FROM client_gb18030.`gb18030 乗乣俓俙僜 a`;
-- @both
SELECT table_name, column_name, collation_name FROM information_schema.columns WHERE table_schema = 'client_gb18030' AND collation_name IS NOT NULL ORDER BY 1, 2;
-- @both
SELECT table_name, character_set_client, collation_connection FROM information_schema.views WHERE table_schema = 'client_gb18030';
-- @both
SELECT routine_name, character_set_client, collation_connection, routine_comment, dtd_identifier FROM information_schema.routines WHERE routine_schema = 'client_gb18030' ORDER BY 1, routine_type;
-- @both
