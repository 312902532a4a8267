const gone = require('./gone');
test('never', () => gone());
