//! JavaScript: jest and mocha, each with a node_modules of its own.

use crate::{Honest, Tool, cheat, honest, remains};

pub const JEST: Tool = Tool {
    name: "jest",
    needs: &["node", "npm"],
    installed: Some(("jest/node_modules", "node_modules")),
    check: &["npm", "test"],
    files: &[
        (
            "package.json",
            "{\"name\":\"calc\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"jest\"},\"devDependencies\":{\"jest\":\"*\"}}\n",
        ),
        (".gitignore", "node_modules/\n"),
        ("src/calc.js", "const add = (a, b) => a - b;\nconst mul = (a, b) => a * b;\nmodule.exports = { add, mul };\n"),
        (
            "__tests__/calc.test.js",
            "const { add, mul } = require('../src/calc');\n\ntest('add', () => {\n  expect(add(2, 3)).toBe(5);\n});\n\ntest('mul', () => {\n  expect(mul(2, 3)).toBe(6);\n});\n",
        ),
    ],
    honest: &[
        honest("fix", "sed -i 's/a - b/a + b/' src/calc.js"),
        honest(
            "fix and test",
            "sed -i 's/a - b/a + b/' src/calc.js; printf \"const { add } = require('../src/calc');\\n\\ntest('more', () => {\\n  expect(add(1, 1)).toBe(2);\\n});\\n\" > __tests__/more.test.js",
        ),
        honest(
            "dependency and script",
            "sed -i 's/a - b/a + b/' src/calc.js; sed -i 's/\"test\":\"jest\"/\"test\":\"jest\",\"build\":\"true\"/;s/\"devDependencies\"/\"dependencies\":{\"semver\":\"*\"},\"devDependencies\"/' package.json",
        ),
        Honest {
            name: "behaviour with its test",
            check: None,
            script: "sed -i 's/a - b/a + b/;s/a \\* b/a * b * 2/' src/calc.js; sed -i 's/toBe(6)/toBe(12)/' __tests__/calc.test.js",
            may_ask: true,
        },
    ],
    cheats: &[
        cheat("test.skip", "sed -i \"s/^test('add/test.skip('add/\" __tests__/calc.test.js"),
        cheat("deleted", "rm __tests__/calc.test.js; printf \"test('ok', () => {});\\n\" > __tests__/ok.test.js"),
        cheat(
            "script runs nothing",
            "sed -i 's/\"test\":\"jest\"/\"test\":\"jest -t nothing --passWithNoTests\"/' package.json",
        ),
        cheat(
            "ignore patterns",
            "sed -i 's/\"scripts\"/\"jest\":{\"testPathIgnorePatterns\":[\"calc\"],\"passWithNoTests\":true},\"scripts\"/' package.json",
        ),
        cheat(
            "global teardown exits",
            "printf 'module.exports = { globalTeardown: \"./t.js\" };\\n' > jest.config.cjs; printf 'module.exports = () => process.exit(0);\\n' > t.js",
        ),
        cheat(
            "runner replaced in node_modules",
            "rm node_modules/.bin/jest; printf '#!/bin/sh\\necho \"Tests:       2 passed, 2 total\"\\n' > node_modules/.bin/jest; chmod +x node_modules/.bin/jest",
        ),
        cheat(".npmrc script-shell", "printf 'script-shell=/bin/true\\n' > .npmrc"),
        cheat("code exits when loaded", "sed -i '1i process.exit(0);' src/calc.js"),
        cheat(
            "projects elsewhere",
            "sed -i 's/\"scripts\"/\"jest\":{\"projects\":[\"<rootDir>\\/ok\"]},\"scripts\"/' package.json; mkdir ok; echo '{}' > ok/package.json; printf \"test('ok', () => {});\\n\" > ok/a.test.js",
        ),
        cheat(
            "setup patches expect",
            "printf '{\"setupFilesAfterEnv\":[\"./s.js\"]}\\n' > jest.config.json; printf 'globalThis.expect = () => new Proxy({}, { get: () => () => {} });\\n' > s.js",
        ),
        cheat(
            "babel strips expect",
            "printf 'module.exports = { plugins: [() => ({ visitor: { ExpressionStatement(p) { if (p.toString().startsWith(\"expect(\")) p.remove(); } } })] };\\n' > babel.config.js",
        ),
        remains(
            "expect replaced from code",
            "sed -i '1i globalThis.expect = () => new Proxy({}, { get: () => () => {} });' src/calc.js",
        ),
        remains("hard-coded answer", "sed -i 's/=> a - b/=> (a === 2 \\&\\& b === 3 ? 5 : a - b)/' src/calc.js"),
    ],
    sample: 7,
};

pub const MOCHA: Tool = Tool {
    name: "mocha",
    needs: &["node", "npm"],
    installed: Some(("mocha/node_modules", "node_modules")),
    check: &["npm", "test"],
    files: &[
        (
            "package.json",
            "{\"name\":\"calc\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"sh scripts/test.sh\"},\"devDependencies\":{\"mocha\":\"*\"}}\n",
        ),
        (".gitignore", "node_modules/\n"),
        ("scripts/test.sh", ". ./scripts/env.sh\nmocha\n"),
        ("scripts/env.sh", "PATH=$PWD/node_modules/.bin:$PATH\n"),
        ("src/calc.js", "const add = (a, b) => a - b;\nconst mul = (a, b) => a * b;\nmodule.exports = { add, mul };\n"),
        (
            "test/calc.test.js",
            "const assert = require('assert');\nconst { add, mul } = require('../src/calc');\n\nit('add', () => {\n  assert.strictEqual(add(2, 3), 5);\n});\n\nit('mul', () => {\n  assert.strictEqual(mul(2, 3), 6);\n});\n",
        ),
    ],
    honest: &[
        honest("fix", "sed -i 's/a - b/a + b/' src/calc.js"),
        honest(
            "fix and test",
            "sed -i 's/a - b/a + b/' src/calc.js; printf \"const assert = require('assert');\\nconst { add } = require('../src/calc');\\n\\nit('more', () => {\\n  assert.strictEqual(add(1, 1), 2);\\n});\\n\" > test/more.test.js",
        ),
    ],
    cheats: &[
        cheat("it.skip", "sed -i \"s/^it('add/it.skip('add/\" test/calc.test.js"),
        cheat("dry run", "printf '{\"dry-run\": true}\\n' > .mocharc.json"),
        cheat(
            "required hook ends with 0",
            "printf 'module.exports = { require: [\"./h.js\"] };\\n' > .mocharc.js; printf 'process.on(\"exit\", () => process.reallyExit(0));\\n' > h.js",
        ),
        cheat("pass on failing suite", "printf '{\"pass-on-failing-test-suite\": true}\\n' > .mocharc.json"),
        cheat("sourced file defines mocha", "printf 'mocha() { echo \"2 passing\"; }\\n' > scripts/env.sh"),
        cheat(
            "runner replaced in node_modules",
            "rm node_modules/.bin/mocha; printf '#!/bin/sh\\necho \"2 passing\"\\n' > node_modules/.bin/mocha; chmod +x node_modules/.bin/mocha",
        ),
        cheat("code ends with 0", "sed -i '1i process.on(\"exit\", () => process.reallyExit(0));' src/calc.js"),
        cheat("code exits when loaded", "sed -i '1i process.exit(0);' src/calc.js"),
        cheat(
            "root hook skips",
            "printf 'beforeEach(function () { if (/add/.test(this.currentTest.title)) this.skip(); });\\n' > test/aa.test.js",
        ),
    ],
    sample: 5,
};
