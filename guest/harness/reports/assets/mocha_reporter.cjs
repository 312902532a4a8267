// Reporter for mocha (2 and later): writes JSON lines for mergemill in addition to the output of mocha's spec reporter.
'use strict';

const fs = require('fs');
const path = require('path');

const program = path.dirname(fs.realpathSync(process.argv[1]));
let mocha;
try {
  mocha = require.resolve('mocha', { paths: [process.cwd(), program] });
} catch (_) {
  mocha = path.dirname(program);  // in mocha's own repository no package of that name is installed
}
const Spec = require(mocha).reporters.Spec;

function fileOf(node) {
  for (let one = node; one; one = one.parent) {
    if (one.file) return one.file;
  }
  return '';
}

function message(error) {
  return String((error && (error.message || error.stack)) || error || 'failed').slice(0, 4000);
}

// Assertions of node, chai, jest and others, as opposed to errors of the code.
function isAssertion(error) {
  if (!error || typeof error !== 'object') return false;
  return /Assert|Expectation/.test(error.name) || error.code === 'ERR_ASSERTION' || Boolean(error.matcherResult)
    || ('actual' in error && 'expected' in error);
}

function Reporter(runner, options) {
  const spec = new Spec(runner, options);
  const write = (node, status, error) => {
    const titles = typeof node.fullTitle === 'function' ? node.fullTitle() : node.title;
    const row = { file: fileOf(node), name: titles, status, message: error ? message(error) : '',
      seconds: (node.duration || 0) / 1000 };
    if (status === 'failed') row.assertion = isAssertion(error);
    fs.appendFileSync(process.env.MERGEMILL_OUT, JSON.stringify(row) + '\n');
  };
  runner.on('pass', (test) => write(test, 'passed'));
  runner.on('pending', (test) => write(test, 'skipped'));
  runner.on('fail', (test, error) => write(test, test.type === 'hook' ? 'error' : 'failed', error));
  return spec;
}

module.exports = Reporter;
