// Runs models in onnxruntime-web for mscgym-runtime, which exchanges lines of JSON with it.
//
//     mscgym-runtime-web.mjs node|chromium wasm|webgpu THREADS ONNXRUNTIME_WEB [PUPPETEER_CORE CHROMIUM]
//
// ONNXRUNTIME_WEB and PUPPETEER_CORE are folders of the npm packages. Each line of standard input is
// a call; its answer is one line: {"error": TEXT} if it fails.
//
//     {"call": "open", "model": FILE, "data": FILE or null}   {"session", "inputs": [{name, type, shape}]}
//     {"call": "feed", "session", "feeds": {NAME: {type, shape, bytes}}}                    {}
//     {"call": "run", "session", "runs"}                      {"us": [microseconds of each run]}
//     {"call": "close", "session"}                            {}
//     {"call": "outputs", "session"}                          {"outputs": {NAME: {type, shape, bytes}}}
//
// `bytes` is base64.
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";

const [place, provider, threads, runtimeFolder, puppeteerFolder, chromium] = process.argv.slice(2);
const require = createRequire(import.meta.url);

// The calls, in Node.js or in a page: `read` gets the bytes of a file by its path.
function makeEngine(ort, provider, threads, read) {
  const sessions = [];
  const kinds = {
    float32: Float32Array, float64: Float64Array, float16: globalThis.Float16Array ?? Uint16Array, int8: Int8Array,
    uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array,
    int64: BigInt64Array, uint64: BigUint64Array, bool: Uint8Array,
  };
  const encode = (data) => {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    let text = "";
    for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
    return btoa(text);
  };
  const decode = ({ type, shape, bytes }) => {
    const text = atob(bytes);
    const data = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) data[i] = text.charCodeAt(i);
    return new ort.Tensor(type, new kinds[type](data.buffer), shape);
  };
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "fatal";
  return {
    async open({ model, data }) {
      const options = { executionProviders: [provider], logSeverityLevel: 4 };
      if (data) options.externalData = [{ path: data.split("/").pop(), data: await read(data) }];
      const session = await ort.InferenceSession.create(await read(model), options);
      sessions.push({ session, feeds: {} });
      const inputs = session.inputMetadata.map(({ name, type, shape }) => ({ name, type, shape }));
      return { session: sessions.length - 1, inputs };
    },
    async close({ session }) {
      await sessions[session].session.release();
      sessions[session] = null;
      return {};
    },
    async feed({ session, feeds }) {
      sessions[session].feeds = Object.fromEntries(Object.entries(feeds).map(([name, row]) => [name, decode(row)]));
      return {};
    },
    async run({ session: index, runs }) {
      const { session, feeds } = sessions[index];
      const us = [];
      for (let i = 0; i < runs; i++) {
        const begin = performance.now();
        await session.run(feeds);
        us.push((performance.now() - begin) * 1000);
      }
      return { us };
    },
    async outputs({ session: index }) {
      const { session, feeds } = sessions[index];
      const found = await session.run(feeds);
      const outputs = {};
      for (const [name, tensor] of Object.entries(found))
        outputs[name] = { type: tensor.type, shape: [...tensor.dims], bytes: encode(await tensor.getData()) };
      return { outputs };
    },
  };
}

async function engineInNode() {
  const ort = require(path.join(runtimeFolder, "dist", "ort.node.min.js"));
  return makeEngine(ort, provider, Number(threads), async (file) => new Uint8Array(fs.readFileSync(file)));
}

// Serves the package, and the models that were opened, to the page. The headers let the page use threads and
// precise clocks.
async function serve(models) {
  const types = { ".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm" };
  const answer = (request, response) => {
    const name = decodeURIComponent(new URL(request.url, "http://x").pathname);
    const file = name.startsWith("/model/") ? models[parseInt(name.slice(7))]
      : name === "/" ? null : path.join(runtimeFolder, "dist", path.basename(name));
    response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
    response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    response.setHeader("Content-Type", file ? types[path.extname(file)] ?? "application/octet-stream" : "text/html");
    if (!file) {
      response.end("<!doctype html><title>mscgym</title>");
      return;
    }
    fs.createReadStream(file).on("error", () => { response.statusCode = 404; response.end(); }).pipe(response);
  };
  const server = http.createServer(answer);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${server.address().port}`;
}

async function engineInChromium() {
  const puppeteer = require(puppeteerFolder);
  const models = [];
  const address = await serve(models);
  const browser = await (puppeteer.default ?? puppeteer).launch({
    executablePath: chromium, headless: true,
    args: ["--no-sandbox", "--enable-unsafe-webgpu", "--enable-features=Vulkan", "--ignore-gpu-blocklist"],
  });
  process.on("exit", () => browser.process()?.kill("SIGKILL"));
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  await page.goto(address);
  await page.evaluate(async (make, provider, threads) => {
    const ort = await import(provider === "webgpu" ? "/ort.webgpu.min.mjs" : "/ort.wasm.min.mjs");
    if (provider === "webgpu" && !(await navigator.gpu?.requestAdapter()))
      throw new Error("Chromium finds no GPU for WebGPU");
    const read = async (file) => new Uint8Array(await (await fetch(`/model/${file}`)).arrayBuffer());
    window.engine = eval(`(${make})`)(ort, provider, threads, read);
  }, makeEngine.toString(), provider, Number(threads));
  const call = (name) => (values) => page.evaluate((name, values) => window.engine[name](values), name, values);
  const publish = (file) => file && `${models.push(file) - 1}/${path.basename(file)}`;
  return {
    open: ({ model, data }) => call("open")({ model: publish(model), data: publish(data) }),
    close: call("close"), feed: call("feed"), run: call("run"), outputs: call("outputs"),
  };
}

function tell(value) {
  process.stdout.write(JSON.stringify(value) + "\n");
}

let engine = null;
for await (const line of readline.createInterface({ input: process.stdin })) {
  try {
    engine ??= await (place === "node" ? engineInNode() : engineInChromium());
    const { call, ...values } = JSON.parse(line);
    tell(await engine[call](values));
  } catch (error) {
    tell({ error: String(error?.message ?? error) });
  }
}
process.exit(0);
