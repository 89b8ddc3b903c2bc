"""The differences of two definitions, and the parts of ALTER TABLE that mend them."""

import pytest

from cdc.sql.create_table import differences, with_folded_names

TABLE = """CREATE TABLE `t` (
  `id` int NOT NULL,
  `a``b` varchar(10) DEFAULT NULL COMMENT 'x,\\ny',
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`a``b`),
  CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `p` (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4"""


def changed(*pairs: tuple[str, str]) -> str:
    text = TABLE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        (TABLE, []),
        (changed((" AUTO_INCREMENT=7", "")), []),
        (changed(("`id` int NOT NULL,\n  ", ""), ("'x,\\ny',", "'x,\\ny',\n  `id` int NOT NULL,")), []),
        (changed(("`id` int NOT NULL", "`id` bigint NOT NULL")), ["MODIFY COLUMN `id` int NOT NULL"]),
        (changed(("varchar(10)", "varchar(9)")), ["MODIFY COLUMN `a``b` varchar(10) DEFAULT NULL COMMENT 'x,\\ny'"]),
        (changed(("  `id` int NOT NULL,\n", "")), ["ADD COLUMN `id` int NOT NULL"]),
        (changed(("  `id` int NOT NULL,", "  `id` int NOT NULL,\n  `z` int,")), ["DROP COLUMN `z`"]),
        (changed(("PRIMARY KEY (`id`)", "PRIMARY KEY (`x`)")), ["DROP PRIMARY KEY, ADD PRIMARY KEY (`id`)"]),
        (changed(("  PRIMARY KEY (`id`),\n", "")), ["ADD PRIMARY KEY (`id`)"]),
        (changed(("UNIQUE KEY", "KEY")), ["DROP KEY `u`, ADD UNIQUE KEY `u` (`a``b`)"]),
        (changed(("`f` FOREIGN", "`g` FOREIGN")),
         ["DROP CONSTRAINT `g`", "ADD CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `p` (`id`)"]),
        (changed(("utf8mb4", "latin1")), ["ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"]),
        (changed(("=utf8mb4", "=utf8mb4 COMMENT='a=\\'b' ROW_FORMAT=DYNAMIC")),
         ["ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='' ROW_FORMAT=DEFAULT"]),
        (changed(("=utf8mb4", "=utf8mb4\n/*!50100 PARTITION BY HASH (`id`)\nPARTITIONS 4 */")),
         ["ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 REMOVE PARTITIONING"]),
        (changed(("InnoDB", "MyISAM")), ["ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"]),
    ],
)  # fmt: skip
def test_the_change_that_mends_a_difference(here: str, expected: list[str]) -> None:
    assert [each.change for each in differences(here, TABLE)] == expected


def test_the_engine_is_left_out_where_the_follower_has_its_own() -> None:
    assert differences(changed(("InnoDB", "MyISAM")), TABLE, any_engine=True) == []


@pytest.mark.parametrize("here", ["", "/*!50100 TABLESPACE `innodb_file_per_table` */ "])
def test_a_tablespace_of_the_leader_is_no_difference(here: str) -> None:
    ours, theirs = (changed(("ENGINE", f"{space}ENGINE")) for space in (here, "/*!50100 TABLESPACE `t``s` */ "))
    assert differences(ours, theirs) == []
    (found,) = differences(ours.replace("utf8mb4", "latin1"), theirs)
    assert found.change == "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"


def test_partitions_of_the_leader() -> None:
    there = f"{TABLE}\n/*!50100 PARTITION BY HASH (`id`)\nPARTITIONS 4 */"
    (found,) = differences(TABLE, there)
    assert found.change == "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 PARTITION BY HASH (`id`) PARTITIONS 4"


def test_names_that_a_server_stores_in_lower_case() -> None:
    there = changed(
        ("`f` FOREIGN", "`T_ibfk_1` FOREIGN"), ("`p` (`id`)", "`Shop`.`P` (`id`)"), ("x,", "CONSTRAINT `X`")
    )
    here = changed(("`f` FOREIGN", "`t_ibfk_1` FOREIGN"), ("`p` (`id`)", "`shop`.`p` (`id`)"), ("x,", "CONSTRAINT `X`"))
    assert with_folded_names(here) == here
    assert with_folded_names(there) == here
