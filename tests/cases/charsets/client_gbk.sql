-- Statements of a client in gbk: names, comments and members with letters of its own.
CREATE DATABASE client_gbk;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_gbk"}]}
USE client_gbk;
SET NAMES gbk;
CREATE TABLE `gbk 乗乣俓俙僜` (`gbk 乗乣俓俙僜` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT '乗乣俓俙僜' COMMENT '乗璥裛鮜亂伮侹倴傓僫儾凓剢勎匴參呹唘喚嘒噿囑坋埉場墏壥奡姙婃媞嫼孋寧屩峚崻嶒巬幤廜彋忊恗惗慆憡懸抂挦掝搚撀擪敄斵昳暡曻枂栁梂棦楆榰樉橤檼欄歟毊汌泜浭淪湠滄漲澓濩瀻炛焌煪燆爙犉ＭちザΘЮㄊ猠玀珮瑐璳甋疄瘓皅昂盋睅敝瞐勃豺硙称碠礆粹祄刀叠秺兑穂乏奉竬嘎筀箹罐篿翰胡粏晃糤饥缄絬骄綠緬沮縠慨况纻朗罶翞伶聁潞肅脦弥腶莫尿舽牌芆茪柒莔嵌渠葕纫蒣搔深蕐事薑藮宿蘨滩铁蛦臀蜽微侮蟯暇蠫袙汹裡旬仰覀沂覵訛渔詑院誄諑罩謅知烛讅灼豑責冂賠倩贒趶谧踒郢垠軂芮軵輿葶辬薹這邒哂郵唰囡醶崦釲鈼膺鉰愠沱鋰湎錢澹咫鎣婵鏗鐡幺鑖璇梓閮樗闠隉赙雛牖霥鞆熳韇慝眢額钋颬餂镢餹鸱馌駤裼騗颛蝻髗竺鬖魲暨鮦醭觖鰢鱿鱔鳎麟鴙鵢鶫鷵鹼黤齆龣', e ENUM('乗乣俓俙僜', 'b')) COMMENT '乗乣俓俙僜' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_gbk/gbk%20%E4%B9%97%E4%B9%A3%E4%BF%93%E4%BF%99%E5%83%9C"}]}
