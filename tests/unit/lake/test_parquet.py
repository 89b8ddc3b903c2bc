"""Which folders of a table of plain Parquet become one: few stay, and each row is written few times."""

from cdc.lake.formats.parquet import Part, put_together


def test_ten_commits_become_one_folder_and_ten_of_these_one_again() -> None:
    parts, written, most = list[Part](), 0, 0
    for _ in range(1000):
        kept, joined = put_together(parts)
        parts = [*kept, Part("", 1 + sum(each.commits for each in joined), {})]
        written += parts[-1].commits
        most = max(most, len(parts))
        assert [each.commits for each in parts] == sorted((each.commits for each in parts), reverse=True)
    assert ([each.commits for each in parts], most) == ([1000], 27)
    assert written < 4 * 1000
