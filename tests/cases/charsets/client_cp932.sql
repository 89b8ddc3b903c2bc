-- Statements of a client in cp932: names, comments and members with letters of its own.
CREATE DATABASE client_cp932;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_cp932"}]}
USE client_cp932;
SET NAMES cp932;
CREATE TABLE `cp932 ＡソチЫЯ` (`cp932 ＡソチЫЯ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ＡソチЫЯ' COMMENT 'Ａ貼歔砡ｹﾒＤｃあせぴろコノョΚλКеэ扱夷育韻云駅苑岡嘉嘩快害獲恰粥敢貫伎祈蟻吸渠強業近串卦経潔犬現菰醐巧硬閤漉魂宰坂冊燦屍詞磁疾邪酒臭夙潤恕承称丞植浸訊随勢醒接浅前阻槍増存耐題奪耽遅鋳牒墜吊程迭杜島蕩道瀞畷濡巴倍舶醗班扉毘俵頻賦淵幣遍俸褒貌盆迄務面悶癒郵耀絡率料鱗列弄鷲亊佝倚傀儺冩刮劼匳雙呰唔單嘲囓垈塰壺奬娶孑寥屶崟嶼幤廰徃怐悁惶慘懷戡抻掎搶舉效旡暎朧柬桷椌楔槃櫁櫂歐毋汳洵淨渤滾潦瀘熈燿犹默琿瓱畸痣癜皸睇矜碼禧穡竓筌箴籃粽絆綟縷纔羈飜聽腋膵舖芻荐菫蒭蓴藪乕蛯蝗蟠袁褂襭觴誚謳讖貭贔踝躅輒辣迸邱醪鉉錵鐇閇闢隰霰鞐顆餞駭驤鬘鮗鰌鴈鶇鹹黥齧曻冾﨏嶸敎桄淏犱皦罇諸鈐錞顗炻傔喆峵戓朗泚煜皂絈訒釞鋠霻鸙', e ENUM('ＡソチЫЯ', 'b')) COMMENT 'ＡソチЫЯ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_cp932/cp932%20%EF%BC%A1%E3%82%BD%E3%83%81%D0%AB%D0%AF"}]}
