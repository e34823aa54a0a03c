"""The runner of pages finds what a page says wrongly, and where."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from pages import Block, blocks, headings, run_page


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_what_a_page_consists_of() -> None:
    text = "# A\n\n<!-- run\nmkdir a\n-->\n```sh\nls\n```\n## B\n"
    text += '<!-- shown: a reason -->\n```python title="x.py"\n# no\n```\n'
    assert blocks(text) == [
        Block("run", "mkdir a\n", 4),
        Block("sh", "ls\n", 7),
        Block("python", "# no\n", 12, "x.py", "a reason"),
    ]
    assert headings(text) == ["# A", "## B"]
    with pytest.raises(AssertionError, match="no block follows the remark: why"):
        blocks("<!-- shown: why -->\n")
    with pytest.raises(AssertionError, match="line 2: the block does not end"):
        blocks("\n```sh\nls\n")


GOOD = """
    <!-- run
    echo three >made.txt
    -->
    ```python
    from pathlib import Path
    word = Path("made.txt").read_text().strip()
    print(word)  # three
    for number in range(2):
        print(number, word)
    # 0 three
    # 1 three
    ```

    ```python title="folder/program.py"
    import sys
    print("in 0.25 s")
    sys.exit(3)
    ```

    1. In a list:

       ```console
       $ echo one \\
       > two
       one two
       $ python folder/program.py
       in 7.5 s
       $ echo $?
       3
       ```

    <!-- shown: it would never end -->
    ```sh
    sleep 10000
    ```

    ```python
    assert word == "three"
    ```
"""


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("print(word)  # three", "print(word)  # four", r"page\.md:8: printed\nthree\n\nbut the page says\nfour"),
        ("print(word)  # three", "print(word)", r"page\.md:8: printed\nthree\n\nbut the page says\n$"),
        ("# 1 three\n", "# 1 three\n    # 2 three\n", r"page\.md:10: printed"),
        ("one two\n", "one, two\n", r"page\.md:24: printed"),
        ("       $ echo $?\n       3\n", "", r"page\.md:24: exit code 3 of python folder/program.py"),
        ("echo three >made.txt", "exit 5", r"page\.md:3: exit code 5"),
        ("```sh", "```", r"block of no language"),
        ('assert word == "three"', 'assert word == "two"', "^$"),
    ],
    ids=lambda text: text.strip().splitlines()[0][:24] if text.strip() else "none",
)
def test_a_page_that_is_right_and_one_that_is_not(
    right: str, wrong: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if right == "```sh":
        bad = GOOD.replace("<!-- shown: it would never end -->\n    ```sh", "```")
    else:
        bad = GOOD.replace(right, wrong)
    assert bad != GOOD
    run_page(page(tmp_path, GOOD))
    with pytest.raises(AssertionError, match=says):
        run_page(page(tmp_path, bad))
