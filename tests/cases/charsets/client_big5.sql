-- Statements of a client in big5: names, comments and members with letters of its own.
CREATE DATABASE client_big5;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_big5"}]}
USE client_big5;
SET NAMES big5;
CREATE TABLE `big5 兝瓩αε么` (`big5 兝瓩αε么` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT '兝瓩αε么' COMMENT '兝節胐潪糎ｒοㄨ夕元文兄奶由全好汗串匣妝快求究阬剁奉帑招杷泛竺邱削奕徇昧洞疫約虹飛剖娟恕書涓疸紗舨訏骨啄婊御授梧淘皎羞蛆逞傑堪悲斑毯煮稀腓註進飧嗅惹楔煤督罩蜇資鉗鼎墅慣漳甄綽蓀赫雌嘹徵暮熟範蔔賞鋅鴆憑歙磨蕈踹靦壑檐瞬聲謗鍬擴穢謫題瀛藕鏖孽蠔囂鐮灑龔灞黌くぼザュд丮氶妅汏冹妧抃汭辿剆坽弨抰毞炃肏阹哅姴恅昢柃炾疪紈茌倅哤宧捄栱涑牷眛窊胹蚨趶偈啈娸崒掫梲淈焂眱笭脥荿袎郩凔堸嵋愘斝棨渜牋痤筌腍菕褁跅鈒傴塉嵧搹楂毷煁瓡碡綍葖萶誆軿鉔僔墑嵹摴榩漘犓碢綪蒫蜾谽銦餂噊嶡摨樄潫璁窲膕蓶蝧賚鄮隢魆噷徼樾濄獪穈縥蕱褯輶錂駣黖懧濴瞴簊蕻螶蹎鍡馘鵀擽瓀繣蟫謽鎧颸鵗攌璷艡襙鏇饇鵱攗礣蠖鐇髆黤礱譺騿鼛籜鑏鷚玂鬟囍驞纛躦钂', e ENUM('兝瓩αε么', 'b')) COMMENT '兝瓩αε么' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_big5/big5%20%E5%85%9D%E7%93%A9%CE%B1%CE%B5%E4%B9%88"}]}
