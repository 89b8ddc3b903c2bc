-- Statements of a client in gb2312: names, comments and members with letters of its own.
CREATE DATABASE client_gb2312;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_gb2312"}]}
USE client_gb2312;
SET NAMES gb2312;
CREATE TABLE `gb2312 ˉˇ々ＡＢ` (`gb2312 ˉˇ々ＡＢ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ˉˇ々ＡＢ' COMMENT 'ˉＶｔげなもェタプワΡρПжюǚㄙ皑袄柏梆豹甭壁彬铂材曹掺钞称侈出窗慈脆带挡凳碘碟洞短朵饵范肺锋服父感歌耿购挂龟氦杭涸红沪痪恢活绩祭钾拣姜铰节津粳灸拒爵慨科哭况腊廊类励敛潦菱龙麓绿落曼枚梦面摸母男蔫泞藕乓抨皮萍圃旗铅蔷侵穷权壤蓉瑞瑟陕哨沈尸誓受属水似宿琐贪倘锑跳筒褪外旺未翁武吸隙衔湘晓懈行需癣押岩殃窑壹以异应泳又宇渊岳载责摘章遮镇脂帜周拄桩灼邹做氐赝劐佚俜傧夔凇诠谘陂郏刍塾垭堀芙苷茼荮菘葑蒿蕞蘖拶揆攉呙咣唧喹嗯噍圊岑崆徇狩獗馍忉怡愠闼沣沱涞渫溴潺宸逑彗妗婀嫜骈纾缁缬珉瑗杞枵桧椐榭樽轱戛炅曩犟氆朊脎塍飙炫燧祯懑砬磉眵畋钌钺铢锍锼镢稃鸬鹜疱瘕穹裣耒颉蚬蜓蜷螅蠡笥箅籁艚粽繇酾蹩踝躏雯隽鲑鲴鳙髅髹黧', e ENUM('ˉˇ々ＡＢ', 'b')) COMMENT 'ˉˇ々ＡＢ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_gb2312/gb2312%20%CB%89%CB%87%E3%80%85%EF%BC%A1%EF%BC%A2"}]}
