// Weir in front of a site: decides in the isolate, forwards what may pass.
//
// | file | what |
// |---|---|
// | main.js | a request's way through |
// | settings.js | variables and bindings, read and checked |
// | answer.js | what a client is answered |
// | isolate.js | this isolate's source: what waits, what is sent, what is due |
// | region.js | the way to the region: a service, or objects |
// | object.js | the region as Durable Objects |
// | above.js | those objects as regions of an aggregator above them |
// | rows.js | bytes as rows of a table hold them |
// | operator.js | what an operator may ask and change |
// | module.js | the WebAssembly module, and bytes to and from it |
//
// All decisions are made in Rust (edge-filter/src/worker/). What is here carries
// bytes, and waits.

import { refused, withHeaders } from "./answer.js";
import { Isolate } from "./isolate.js";
import { operate } from "./operator.js";
import { SettingsError, settingsOf } from "./settings.js";

export { Region } from "./object.js";

let settings = null;
let isolate = null;

export default {
  fetch(request, env, ctx) {
    try {
      settings ??= settingsOf(env, request.cf?.colo);
    } catch (error) {
      return refuse(error);
    }
    const operated = operate(request, env, settings);
    if (operated !== null) return operated;
    try {
      if (isolate === null || isolate.broken) isolate = new Isolate(settings);
    } catch (error) {
      if (error instanceof SettingsError) return refuse(error);
      console.error(`weir: nothing is limited, the limiter does not start: ${error.stack}`);
      return settings.forward(request, env);
    }
    return serve(isolate, request, env, ctx);
  },
};

// Whoever need not wait does not: each promise more is a turn more.
function serve(isolate, request, env, ctx) {
  const id = isolate.number();
  const settle = (refusal) => {
    if (refusal !== null) return refused(request, refusal);
    return isolate.awaits(id) ? shown(isolate, id, request, env, ctx) : settings.forward(request, env);
  };
  const verdict = isolate.decide(id, request, env, ctx);
  return verdict instanceof Promise ? verdict.then(settle) : settle(verdict);
}

// Forwards a request, and shows its response to the rules.
async function shown(isolate, id, request, env, ctx) {
  let response;
  try {
    response = await settings.forward(request, env);
  } catch (error) {
    isolate.forget(id);
    throw error;
  }
  return withHeaders(response, isolate.answered(id, response, env, ctx));
}

// Settings that are wrong are seen at the first request of a deployment.
function refuse(error) {
  if (!(error instanceof SettingsError)) throw error;
  console.error(`weir: ${error.message}`);
  return new Response(`weir: ${error.message}\n`, { status: 500 });
}
