// Before an install without the tree: no scripts of the project's own, and no dependencies that no registry has.
const fs = require('fs');
const [dropped, ...files] = process.argv.slice(1);
const OWN = ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare', 'dependencies',
  'pnpm:devPreinstall', 'prepack', 'postpack'];
for (const file of files) {
  const data = JSON.parse(fs.readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  for (const name of OWN) if (data.scripts) delete data.scripts[name];
  for (const section of ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']) {
    for (const name of JSON.parse(dropped)) if (data[section]) delete data[section][name];
  }
  fs.writeFileSync(file, JSON.stringify(data, null, 2));
}
