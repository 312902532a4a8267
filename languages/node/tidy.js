// Before an install without the tree: no scripts of the project's own, no dependencies that no registry has, and nothing of
// the versions of Node and its package manager, which are chosen already and may be another patch than what is pinned.
const fs = require('fs');
const [dropped, ...files] = process.argv.slice(1);
const OWN = ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare', 'dependencies',
  'pnpm:devPreinstall', 'prepack', 'postpack'];
for (const file of files) {
  const data = JSON.parse(fs.readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  for (const name of ['engines', 'devEngines']) delete data[name];
  for (const name of OWN) if (data.scripts) delete data.scripts[name];
  for (const section of ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']) {
    for (const name of JSON.parse(dropped)) if (data[section]) delete data[section][name];
  }
  fs.writeFileSync(file, JSON.stringify(data, null, 2));
}
