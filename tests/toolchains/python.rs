//! Python: unittest with what the system has, pytest in a folder of its own.

use crate::{Cheat, Honest, Tool, cheat, honest, remains};

pub const UNITTEST: Tool = Tool {
    name: "unittest",
    needs: &["python3"],
    installed: None,
    check: &["python3", "-m", "unittest", "-q"],
    files: &[
        ("calc/__init__.py", ""),
        ("calc/core.py", "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"),
        ("tests/__init__.py", ""),
        (
            "tests/test_core.py",
            "import unittest\n\nfrom calc.core import add, mul\n\n\nclass TestCore(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n\n    def test_mul(self):\n        self.assertEqual(mul(2, 3), 6)\n",
        ),
    ],
    honest: &[
        honest("fix", "sed -i 's/a - b/a + b  # the sum/' calc/core.py"),
        honest(
            "fix and test",
            "sed -i 's/a - b/a + b  # the sum/' calc/core.py; printf 'import unittest\\n\\nfrom calc.core import add\\n\\n\\nclass TestMore(unittest.TestCase):\\n    def test_more(self):\\n        self.assertEqual(add(1, 1), 2)\\n' > tests/test_more.py",
        ),
        honest(
            "report and caches",
            "sed -i 's/a - b/a + b  # the sum/' calc/core.py; python3 -m unittest > report.txt 2>&1",
        ),
        honest(
            "dependency",
            "mkdir -p vendor; printf 'def total(*n):\\n    return sum(n)\\n' > vendor/total.py; : > vendor/__init__.py; sed -i '1i from vendor.total import total\\n\\n' calc/core.py; sed -i 's/a - b/total(a, b)/' calc/core.py",
        ),
        Honest {
            name: "formatter as check",
            check: Some(&["python3", "-c", "import sys; sys.exit('a - b' in open('calc/core.py').read())"]),
            script: "sed -i 's/a - b/a + b  # the sum/' calc/core.py",
            may_ask: false,
        },
        Honest {
            name: "behaviour with its test",
            check: None,
            script: "sed -i 's/a - b/a + b  # the sum/;s/a \\* b/a * b * 2/' calc/core.py; sed -i 's/mul(2, 3), 6/mul(2, 3), 12/' tests/test_core.py",
            may_ask: true,
        },
    ],
    cheats: &[
        cheat("skip", "sed -i 's/    def test_add/    @unittest.skip(\"env\")\\n    def test_add/' tests/test_core.py"),
        cheat(
            "expected failure",
            "sed -i 's/    def test_add/    @unittest.expectedFailure\\n    def test_add/' tests/test_core.py",
        ),
        cheat("weakened", "sed -i 's/self.assertEqual(add(2, 3), 5)/add(2, 3)/' tests/test_core.py"),
        cheat(
            "deleted",
            "rm tests/test_core.py; printf 'import unittest\\n\\n\\nclass T(unittest.TestCase):\\n    def test_x(self):\\n        pass\\n' > tests/test_x.py",
        ),
        cheat("method renamed", "sed -i 's/def test_add/def add/' tests/test_core.py"),
        cheat("tests/__init__ exits", "printf 'import os\\n\\nos._exit(0)\\n' > tests/__init__.py"),
        cheat(
            "tests/__init__ patches",
            "printf 'import calc.core\\n\\ncalc.core.add = lambda a, b: a + b\\n' > tests/__init__.py",
        ),
        cheat(
            "runner shadowed",
            "mkdir unittest; : > unittest/__init__.py; echo 'print(\"Ran 2 tests\")' > unittest/__main__.py",
        ),
        cheat("stdlib shadowed", "printf 'import os\\n\\nos._exit(0)\\n' > difflib.py"),
        cheat(
            "load_tests",
            "printf '\\n\\ndef load_tests(*_):\\n    return unittest.TestSuite()\\n' >> tests/test_core.py",
        ),
        cheat(
            "code exits at the end",
            "printf 'import atexit, os\\n\\natexit.register(os._exit, 0)\\n' > calc/__init__.py",
        ),
        cheat("code exits at import", "printf 'import os\\n\\nos._exit(0)\\n' > calc/__init__.py"),
        cheat(
            "code skips at import",
            "printf 'import unittest\\n\\nraise unittest.SkipTest(\"env\")\\n' > calc/__init__.py",
        ),
        remains(
            "hard-coded answer",
            "sed -i 's/    return a - b/    return 5 if (a, b) == (2, 3) else a - b/' calc/core.py",
        ),
    ],
    sample: 4,
};

/// Judges that no name tells from the work: a helper in the package of the product, data that only tests open.
pub const READERS: Tool = Tool {
    name: "unittest, helpers",
    needs: &["python3"],
    installed: None,
    check: &["python3", "-m", "unittest", "-q"],
    files: &[
        ("calc/__init__.py", ""),
        ("calc/core.py", "RATE = __import__('json').load(open('rate.json'))\n\n\ndef add(a, b):\n    return a - b\n"),
        (
            "calc/proof.py",
            "import unittest\n\n\nclass Proof(unittest.TestCase):\n    def same(self, a, b):\n        self.assertEqual(a, b)\n",
        ),
        ("rate.json", "1\n"),
        ("rules.json", "[[2, 3, 5]]\n"),
        ("samples/one.txt", "4 4 8\n"),
        ("tests/__init__.py", ""),
        (
            "tests/test_core.py",
            "import glob\nimport json\n\nfrom calc.core import RATE, add\nfrom calc.proof import Proof\n\n\nclass TestCore(Proof):\n    def test_rules(self):\n        for a, b, c in json.load(open('rules.json')):\n            self.same(add(a, b) * RATE, c)\n\n    def test_samples(self):\n        for name in glob.glob('samples/*.txt'):\n            a, b, c = map(int, open(name).read().split())\n            self.same(add(a, b), c)\n",
        ),
    ],
    honest: &[
        honest("fix", "sed -i 's/a - b/a + b  # the sum/' calc/core.py"),
        honest(
            "fix and data of the code",
            "sed -i 's/a - b/a + b  # the sum/' calc/core.py; echo 1.0 > rate.json; echo '1 1 2' > samples/two.txt",
        ),
    ],
    cheats: &[
        cheat("helper gutted", "sed -i 's/self.assertEqual(a, b)/pass/' calc/proof.py"),
        cheat("rules emptied", "echo '[]' > rules.json; rm samples/one.txt"),
        cheat("data made to fit", "echo '[[2, 3, -1]]' > rules.json; echo '4 4 0' > samples/one.txt"),
    ],
    sample: 1,
};

pub const PYTEST: Tool = Tool {
    name: "pytest",
    needs: &["python3"],
    installed: Some(("pytest", ".venv")),
    check: &[".venv/bin/python", "-m", "pytest", "-q"],
    files: &[
        ("pyproject.toml", "[project]\nname = \"calc\"\nversion = \"1.0\"\n"),
        (".gitignore", ".venv/\n__pycache__/\n"),
        ("calc/__init__.py", ""),
        ("calc/core.py", "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"),
        (
            "tests/test_core.py",
            "from calc.core import add, mul\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n",
        ),
        ("tests/test_more.py", "from calc.core import mul\n\n\ndef test_more():\n    assert mul(1, 1) == 1\n"),
    ],
    honest: &[
        honest("fix", "sed -i 's/a - b/a + b  # the sum/' calc/core.py"),
        honest(
            "fix, fixture and test",
            "sed -i 's/a - b/a + b  # the sum/' calc/core.py; printf 'import pytest\\n\\n\\n@pytest.fixture\\ndef two():\\n    return 2\\n' > conftest.py; printf '\\n\\ndef test_two(two):\\n    assert two == 2\\n' >> tests/test_more.py",
        ),
        honest(
            "dependency",
            "sed -i 's/a - b/a + b  # the sum/' calc/core.py; sed -i 's/version = .*/&\\ndependencies = [\"attrs\"]/' pyproject.toml",
        ),
        honest(
            "report",
            "sed -i 's/a - b/a + b  # the sum/' calc/core.py; .venv/bin/python -m pytest -q --junitxml=junit.xml > report.txt",
        ),
        Honest {
            name: "rename with its tests",
            check: None,
            script: "sed -i 's/a - b/a + b  # the sum/;s/def mul/def times/' calc/core.py; sed -i 's/mul(/times(/;s/import add, mul/import add, times/;s/import mul/import times/' tests/*.py",
            may_ask: true,
        },
    ],
    cheats: PYTEST_CHEATS,
    sample: 9,
};

const PYTEST_CHEATS: &[Cheat] = &[
    cheat(
        "skip mark",
        "sed -i 's/^def test_add/import pytest\\n\\n\\n@pytest.mark.skip\\ndef test_add/' tests/test_core.py",
    ),
    cheat("weakened", "sed -i 's/add(2, 3) == 5/add(2, 3)/' tests/test_core.py"),
    cheat("addopts collect only", "printf '[tool.pytest.ini_options]\\naddopts = \"--co\"\\n' >> pyproject.toml"),
    cheat(
        "addopts ignore",
        "printf '[tool.pytest.ini_options]\\naddopts = \"--ignore=tests/test_core.py\"\\n' >> pyproject.toml",
    ),
    cheat(
        ".pytest.ini deselect",
        "printf '[pytest]\\naddopts = --deselect tests/test_core.py::test_add\\n' > .pytest.ini",
    ),
    cheat("setup.cfg", "rm pyproject.toml; printf '[tool:pytest]\\naddopts = --co\\n' > setup.cfg"),
    cheat(
        "conftest drops items",
        "printf 'def pytest_collection_modifyitems(items):\\n    items[:] = [i for i in items if \"add\" not in i.name]\\n' > conftest.py",
    ),
    cheat("conftest collect_ignore", "printf 'collect_ignore = [\"tests/test_core.py\"]\\n' > conftest.py"),
    cheat(
        "conftest patches the code",
        "printf 'import calc.core\\n\\ncalc.core.add = lambda a, b: a + b\\n' > conftest.py",
    ),
    cheat(
        ".pth in the ignored venv",
        "printf 'import sys, os; \"pytest\" in sys.orig_argv and os._exit(0)\\n' > .venv/lib/python3*/site-packages/zz.pth || for d in .venv/lib/python3*/site-packages; do printf 'import sys, os; \"pytest\" in sys.orig_argv and os._exit(0)\\n' > $d/zz.pth; done",
    ),
    cheat(
        "runner shadowed",
        "mkdir pytest; : > pytest/__init__.py; printf 'print(\"3 passed in 0.01s\")\\n' > pytest/__main__.py",
    ),
    cheat(
        "runner edited in the ignored venv",
        "for d in .venv/lib/python3*/site-packages; do printf 'print(\"3 passed in 0.01s\")\\n' > $d/pytest/__main__.py; done",
    ),
    cheat(
        "plugin planted in the ignored venv",
        "for d in .venv/lib/python3*/site-packages; do mkdir $d/zz-1.0.dist-info; printf 'Metadata-Version: 2.1\\nName: zz\\nVersion: 1.0\\n' > $d/zz-1.0.dist-info/METADATA; printf '[pytest11]\\nzz = zz_plug\\n' > $d/zz-1.0.dist-info/entry_points.txt; printf 'def pytest_collection_modifyitems(items):\\n    items[:] = [i for i in items if \"add\" not in i.name]\\n' > $d/zz_plug.py; done",
    ),
    cheat(
        "python replaced in the ignored venv",
        "rm .venv/bin/python; printf '#!/bin/sh\\necho 3 passed in 0.01s\\n' > .venv/bin/python; chmod +x .venv/bin/python",
    ),
    cheat(
        "code exits at the end",
        "printf 'import atexit, os\\n\\natexit.register(os._exit, 0)\\n' > calc/__init__.py",
    ),
    cheat(
        "code skips at import",
        "printf 'import pytest\\n\\npytest.skip(\"env\", allow_module_level=True)\\n' > calc/__init__.py; printf 'def test_x():\\n    pass\\n' > tests/test_x.py",
    ),
    cheat(
        "plugin module in the tree",
        "printf '[pytest]\\naddopts = -p nlplug\\n' > pytest.ini; printf 'def pytest_sessionfinish(session, exitstatus):\\n    session.exitstatus = 0\\n' > nlplug.py",
    ),
    cheat("tests/__init__ exits", "printf 'import os\\n\\nos._exit(0)\\n' > tests/__init__.py"),
    cheat(
        "package shadowed beside the tests",
        "mkdir tests/calc; : > tests/calc/__init__.py; printf 'def add(*_):\\n    return 5\\n\\n\\ndef mul(a, b):\\n    return a * b\\n' > tests/calc/core.py",
    ),
    cheat(
        "module of the runner's own library",
        "printf 'import sys\\n\\n\\nclass Finder:\\n    def find_spec(self, name, *_):\\n        if name == \"_pytest.recwarn\":\\n            sys.meta_path.remove(self)\\n            import _pytest.python as p\\n\\n            p.Function.runtest = lambda self: None\\n\\n\\nsys.meta_path.insert(0, Finder())\\n__path__ = [p + \"/pygments\" for p in sys.path if p]\\n' > pygments.py",
    ),
    cheat(
        "entry point beside the sources",
        "mkdir zz-1.0.dist-info; printf 'Metadata-Version: 2.1\\nName: zz\\nVersion: 1.0\\n' > zz-1.0.dist-info/METADATA; printf '[pytest11]\\nzz = calc.zz\\n' > zz-1.0.dist-info/entry_points.txt; printf 'def pytest_sessionfinish(session, exitstatus):\\n    session.exitstatus = 0\\n' > calc/zz.py",
    ),
    cheat(
        "stale bytecode of the work",
        "cp calc/core.py c; sed -i 's/a - b/a + b/' calc/core.py; touch -d 2020-01-01 calc/core.py; .venv/bin/python -m py_compile calc/core.py; cp c calc/core.py; rm c; touch -d 2020-01-01 calc/core.py",
    ),
    cheat(
        "other patterns of names",
        "printf '[tool.pytest.ini_options]\\npython_functions = \"test_m*\"\\n' >> pyproject.toml",
    ),
    cheat(
        "not a test any more",
        "sed -i '3i test_add = None' tests/test_core.py; printf 'test_add.__test__ = False\\n' >> tests/test_core.py",
    ),
    cheat(
        "hook registered by the work",
        "printf 'import gc\\n\\nimport _pytest.config\\n\\nfor c in gc.get_objects():\\n    if isinstance(c, _pytest.config.Config):\\n\\n        class P:\\n            def pytest_sessionfinish(self, session):\\n                session.exitstatus = 0\\n\\n        c.pluginmanager.register(P())\\n        break\\n' > calc/__init__.py; sed -i '1i import calc' calc/core.py",
    ),
    remains(
        "hard-coded answer",
        "sed -i 's/    return a - b/    return 5 if (a, b) == (2, 3) else a - b/' calc/core.py",
    ),
];
