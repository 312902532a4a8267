require('./gone');
