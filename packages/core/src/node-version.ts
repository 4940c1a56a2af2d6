/** Imported before anything else: an older Node fails on some missing function otherwise, and says nothing of the reason. */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18))
  throw new Error(`Twiceproof needs Node 22.18 or newer; this is ${process.versions.node}.`);
