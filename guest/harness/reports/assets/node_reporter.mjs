// Reporter for node:test: writes JSON lines for mergemill: file, name with its suites, status, message, seconds.

function message(details) {
  const error = details?.error;
  const cause = error?.cause ?? error;
  return String(cause?.message ?? cause ?? '').split('\n')[0];
}

// Assertions of node, chai, jest and others, as opposed to errors of the code.
function isAssertion(details) {
  const error = details?.error?.cause ?? details?.error;
  if (!error || typeof error !== 'object') return false;
  return /Assert|Expectation/.test(error.name) || error.code === 'ERR_ASSERTION' || Boolean(error.matcherResult)
    || ('actual' in error && 'expected' in error);
}

export default async function* mergemill(source) {
  const titles = new Map(); // file -> titles of the suites around, by nesting
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      const open = titles.get(data.file) ?? [];
      open.length = data.nesting;
      open[data.nesting] = data.name;
      titles.set(data.file, open);
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const open = titles.get(data.file) ?? [];
    const name = [...open.slice(0, data.nesting), data.name].join(' > ');
    const seconds = (data.details?.duration_ms ?? 0) / 1000;
    const failed = type === 'test:fail';
    const isFile = data.nesting === 0 && data.file && (data.name === data.file || data.file.endsWith(`/${data.name}`));
    if (isFile) {
      if (failed && data.details?.error?.failureType !== 'subtestsFailed') {
        yield JSON.stringify({ file: data.file, uncollected: message(data.details) }) + '\n';
      }
      continue;
    }
    if (data.details?.type === 'suite' && !(failed && data.details?.error?.failureType !== 'subtestsFailed')) continue;
    let status = failed ? 'failed' : 'passed';
    if (data.todo !== undefined && data.todo !== false) status = failed ? 'xfailed' : 'passed';
    if (data.skip !== undefined && data.skip !== false) status = 'skipped';
    const row = { file: data.file ?? '', name, status, message: failed ? message(data.details) : '', seconds };
    if (status === 'failed') row.assertion = isAssertion(data.details);
    yield JSON.stringify(row) + '\n';
  }
}
