// A worker of the demo, in Node: takes jobs over HTTP, by the Open Job Specification, and tells how they ended.
// JOBS_KEY=… node project/worker.mjs http://127.0.0.1:8000 [queue]. Needs Node 18 or later, and no package.
const [server, queue = "node"] = process.argv.slice(2);
const me = `node-${process.pid}`;
const sleep = (seconds) => new Promise((wake) => setTimeout(wake, seconds * 1000));

const ask = async (path, body) => {
  const headers = { "Content-Type": "application/openjobspec+json", Authorization: `Bearer ${process.env.JOBS_KEY}` };
  const answer = await fetch(`${server}/ojs/v1/workers/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} was refused: ${await answer.text()}`);
  return answer.json();
};

const handlers = {
  async "price.tell"(amount, currency, seconds = 0) {
    await sleep(seconds); // As if it took so long.
    const told = (place) => new Intl.NumberFormat(place, { style: "currency", currency }).format(amount);
    return Object.fromEntries(["en-US", "de-DE", "fr-FR", "ja-JP"].map((place) => [place, told(place)]));
  },
};

const work = async (job) => {
  const beat = () => ask("heartbeat", { worker_id: me, active_jobs: [job.id] }).catch((error) => console.error(error.message));
  const beats = setInterval(beat, 1000); // Or its lease would run out, and another worker take the job.
  const [path, said] = await (async () => handlers[job.type](...job.args))().then(
    (result) => ["ack", { result }],
    (error) => ["nack", { error: { code: error.name, message: error.message } }],
  );
  clearInterval(beats);
  console.log(job.type, job.id, path, JSON.stringify(said));
  await ask(path, { job_id: job.id, worker_id: me, attempt: job.attempt, ...said });
};

for (;;) {
  try {
    const { jobs } = await ask("fetch", { queues: [queue], worker_id: me });
    await (jobs.length ? Promise.all(jobs.map(work)) : sleep(0.5));
  } catch (error) {
    console.error(`${error.message}; again in two seconds.`); // The site is away, or the job has another worker by now.
    await sleep(2);
  }
}
