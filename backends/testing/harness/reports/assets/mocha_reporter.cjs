// A reporter for mocha (2 and later) that writes JSON lines for mergemill beside what mocha's own spec reporter prints.
'use strict';

const fs = require('fs');
const path = require('path');

const places = [process.cwd(), path.dirname(fs.realpathSync(process.argv[1]))];
const Mocha = require(require.resolve('mocha', { paths: places }));
const Spec = Mocha.reporters.Spec;

function fileOf(node) {
  for (let one = node; one; one = one.parent) {
    if (one.file) return one.file;
  }
  return '';
}

function message(error) {
  return String((error && (error.message || error.stack)) || error || 'failed').slice(0, 4000);
}

function Reporter(runner, options) {
  const spec = new Spec(runner, options);
  const tell = (node, status, error) => {
    const titles = typeof node.fullTitle === 'function' ? node.fullTitle() : node.title;
    const row = { file: fileOf(node), name: titles, status, message: error ? message(error) : '',
      seconds: (node.duration || 0) / 1000 };
    fs.appendFileSync(process.env.MERGEMILL_OUT, JSON.stringify(row) + '\n');
  };
  runner.on('pass', (test) => tell(test, 'passed'));
  runner.on('pending', (test) => tell(test, 'skipped'));
  runner.on('fail', (test, error) => tell(test, test.type === 'hook' ? 'error' : 'failed', error));
  return spec;
}

module.exports = Reporter;
