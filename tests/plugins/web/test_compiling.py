"""Archives of bytecode: they run as their sources do, and rules stay where they are looked for."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

from advisor.plugins.web.compiling import compiled

SOURCES = {
    "one/__init__.py": '"""Words."""\nfrom one.two import VALUE\n',
    "one/two.py": "VALUE = 7\n",
    "one/data.json": "{}",
    "advisor/rules/lint/some_rule.py": "RULE = 8\n",
}
LOADS = """
import importlib.util, sys
sys.path.insert(0, sys.argv[1])
import one
spec = importlib.util.spec_from_file_location("rule", sys.argv[1] + "/advisor/rules/lint/some_rule.py")
rule = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rule)
print(one.VALUE, one.__doc__, rule.RULE)
"""


def test_a_compiled_archive_runs_without_its_sources(tmp_path: Path):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, text in SOURCES.items():
            file.writestr(name, text)
    with zipfile.ZipFile(io.BytesIO(compiled(archive.getvalue()))) as file:
        names = set(file.namelist())
        file.extractall(tmp_path)
    assert {"one/__init__.pyc", "one/two.pyc", "one/data.json", "advisor/rules/lint/some_rule.py"} <= names
    assert "one/two.py" not in names and len(names) == 5
    # The rule's own text counts no more: its bytecode is believed.
    (tmp_path / "advisor/rules/lint/some_rule.py").write_text("RULE = 9\n")
    said = subprocess.run([sys.executable, "-c", LOADS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["7", "None", "8"]
