// Reports tests in the words of Rust's test harness. The project's test command counts them, and its summary repeats why one failed.
//
// In: events of node's test runner. Out: text.

export default async function* report(source) {
  const [failures, counts] = [[], { passed: 0, failed: 0, ignored: 0 }];
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const result = data.skip !== undefined ? 'ignored' : type === 'test:pass' ? 'ok' : 'FAILED';
    counts[{ ok: 'passed', FAILED: 'failed', ignored: 'ignored' }[result]] += 1;
    if (result === 'FAILED') failures.push(`---- ${data.name} stdout ----\n${data.details.error?.cause?.stack ?? data.details.error?.stack ?? data.details.error}\n`);
    yield `test ${data.name} ... ${result}\n`;
  }
  if (failures.length > 0) yield `\nfailures:\n\n${failures.join('\n')}\nfailures:\n`;
  yield `test result: ${failures.length === 0 ? 'ok' : 'FAILED'}. ${counts.passed} passed; ${counts.failed} failed; ${counts.ignored} ignored\n`;
}
