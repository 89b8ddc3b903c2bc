-- Statements of a client in eucjpms: names, comments and members with letters of its own.
CREATE DATABASE client_eucjpms;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_eucjpms"}]}
USE client_eucjpms;
SET NAMES eucjpms;
CREATE TABLE `eucjpms ｦｧｨｩｪ` (`eucjpms ｦｧｨｩｪ` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'ｦｧｨｩｪ' COMMENT 'ｦﾑＴかぶギベΞЗс綾域欝園沖茄灰覚鴨竿寄祇給狂吟薫頚絹袴向綱獄挫作算紙竺灼繍瞬升称譲親髄西千繕早速泰脱恥凋追梯伝東胴凪捻倍肌挽鼻斌風閉倣房枚夢餅揖要里力漣惑仗倩儼凾勵叮哥嘔圄塋奕嫗寫嶌帙弉忿惠慱戡挈攪敕晟杤梭楜槲櫚毆泪湮漱瀏燗狎琺畍痺皸瞼礙穩筐篷糜綯緕羯聿膤艟茫蕚蕋蚓蝎蠧襃訃謇豢赱蹼輾遉醯鋺鑄阡霑韭餽驗魃鰛鶇黌堯ђÂÑâó丒仾佾俿偭僤兘刢劻匰叓咕唻嗒噢囡坧埤墀虁妯婈嫵宱屴崽巐庤弿忑恧惼憒戧拼掄搥撽攽旿晫曮柀桱棶榦橊櫝歾氟泆浰渻滭澌瀷烜熯牚猅玃珷瑭瓞畻瘌皌眙瞔砰磌祋秝穠笟箵簱糄絗緙繳羑耠胲膘舲芮茺菝蒁蔢薘蘞蚳蜲螾蠮裍襚觹詺謅谹賏趷踸躻轁适邰鄠醘鈅鉠鋁錡鎏鐄閈阸雟鞗韸颴饁駾骿鬜鮋鰂鱫鵶鷰黕齄坙薰', e ENUM('ｦｧｨｩｪ', 'b')) COMMENT 'ｦｧｨｩｪ' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_eucjpms/eucjpms%20%EF%BD%A6%EF%BD%A7%EF%BD%A8%EF%BD%A9%EF%BD%AA"}]}
