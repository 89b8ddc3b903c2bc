-- Statements of a client in euckr: names, comments and members with letters of its own.
CREATE DATABASE client_euckr;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/client_euckr"}]}
USE client_euckr;
SET NAMES euckr;
CREATE TABLE `euckr 갂갃갅갆갋` (`euckr 갂갃갅갆갋` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT '갂갃갅갆갋' COMMENT '갂걛겱괅굑궠귣긧꺀꺻꼆꽏꾒꿗뀞끣낶냻녍놙뇖눢뉞늫댅덄뎖돟됞둟뒟듨딲땻뗂똂뙁뙼뚻뛶뜷랁럐렖롢뢢룪뤫륲릹먑멗몟뫥묦뭴뮲믱뱒벑볣봧뵩붱뷯븴뺆뻆뼋뽌뾇뿁쀁쀹쁸샆섓셭솸쇿쉋슔싘쌭썦쎪쏫쐪쑫쒪쓤씫얆엞옾욌웛윪잁쟞젧졫좶죻줿즀짂ｐ쨟ㅂㅺ쩴Θ쪷쫽쬻쭼쮵쯢æ챢がや쳍キュ촰Й쵡춦췤츬칲캽가겟켚콟귄콹쾷꼽끗퀍내농큦눙닻킿덴뒹턞텩뚫텽퇂롄퇔툒망몽퉧뭍뱄틃벼뷴팫빰쁜펁폎솅폤퐦실퐸푷씜얾퓎엿용픨윈잠햌헆죽헡혮쫌홄횏쳉츰훮캣쿰흎킁톨특펠프협휀架碣介乞境誡滾館餃龜硅急綺捏魯彖對瀆嶝瑯蓮鹵瀏鯉茉名昴湄畔徘碧腹芙批使朔裳汐纖疎岫孰承晨幄扼讓閭蓮玲惡翫遙芋苑柔律姨藺自腸貯筌楨題猝走持臻着蒼哲樵鄒層陀颱阪抱珌哈香刑胡奐灰毁禧', e ENUM('갂갃갅갆갋', 'b')) COMMENT '갂갃갅갆갋' /* {hex ff} */;
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/client_euckr/euckr%20%EA%B0%82%EA%B0%83%EA%B0%85%EA%B0%86%EA%B0%8B"}]}
