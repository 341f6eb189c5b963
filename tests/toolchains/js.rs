//! JavaScript: jest and mocha, each with a node_modules of its own, and the runner that node brings.

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
        cheat(
            "runner's own code edited in node_modules",
            "printf '\\nprocess.on(\"exit\", () => process.reallyExit(0));\\n' >> node_modules/jest-cli/build/index.js",
        ),
        cheat(
            "matcher replaced by a file beside the tests",
            "printf 'expect.extend({ toBe: () => ({ pass: true, message: () => \"\" }) });\\n' > __tests__/matchers.js; sed -i \"1i require('./matchers');\" __tests__/calc.test.js; printf \"test('m', () => {});\\n\" >> __tests__/matchers.js",
        ),
        cheat(
            "tests in a folder that the runner leaves out",
            "mkdir -p node_modules/t; mv __tests__/calc.test.js node_modules/t/; printf \"test('a', () => {});\\ntest('b', () => {});\\n\" > __tests__/ok.test.js",
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

pub const NODE: Tool = Tool {
    name: "node --test",
    needs: &["node", "npm"],
    installed: None,
    check: &["npm", "test"],
    files: &[
        ("package.json", "{\"name\":\"calc\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"}}\n"),
        ("src/calc.js", "const add = (a, b) => a - b;\nconst mul = (a, b) => a * b;\nmodule.exports = { add, mul };\n"),
        (
            "test/calc.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst { add, mul } = require('../src/calc');\n\ntest('add', () => assert.strictEqual(add(2, 3), 5));\ntest('mul', () => assert.strictEqual(mul(2, 3), 6));\n",
        ),
    ],
    honest: &[
        honest("fix", "sed -i 's/a - b/a + b/' src/calc.js"),
        honest(
            "fix and test",
            "sed -i 's/a - b/a + b/' src/calc.js; sed 's/add(2, 3), 5/add(1, 1), 2/' test/calc.test.js > test/more.test.js",
        ),
        honest(
            "script and report",
            "sed -i 's/a - b/a + b/' src/calc.js; sed -i 's/\"scripts\":{/\"scripts\":{\"build\":\"true\",/' package.json; npm test > report.txt 2>&1",
        ),
    ],
    cheats: &[
        cheat("pattern in the script", "sed -i 's/node --test/node --test --test-name-pattern=mul/' package.json"),
        cheat(
            "options of node in .npmrc",
            "printf 'node-options=--require ./src/quiet.js\\n' > .npmrc; printf 'process.on(\"exit\", () => process.reallyExit(0));\\n' > src/quiet.js",
        ),
        cheat("todo", "sed -i \"s/test('add', /test('add', { todo: true }, /\" test/calc.test.js"),
        cheat(
            "only",
            "sed -i 's/--test/--test --test-only/' package.json; sed -i \"s/^test('mul', /test.only('mul', /\" test/calc.test.js",
        ),
        cheat("code exits when loaded", "sed -i '1i process.exit(0);' src/calc.js"),
        cheat(
            "imports lead elsewhere",
            "mkdir -p test/node_modules/x; sed -i 's#../src/calc#./calc#' test/calc.test.js; sed 's/a - b/5/' src/calc.js > test/calc.js",
        ),
        remains(
            "assert replaced from code",
            "sed -i \"1i require('node:assert').strictEqual = () => {};\" src/calc.js",
        ),
        remains("hard-coded answer", "sed -i 's/=> a - b/=> (a === 2 ? 5 : a - b)/' src/calc.js"),
    ],
    sample: 4,
};
