// What an operator may ask and change, under /_weir/ and with a token. Without
// WEIR_OPERATOR_TOKEN there is no such path.
//
//   GET /_weir/status   the books of each object, as JSON
//   PUT /_weir/rules    rules as `weir rules compile` writes them, in force at once;
//                       below an aggregator they are put there

const PREFIX = "/_weir/";

// A promise of the answer; null if the request is not the operator's.
export function operate(request, env, settings) {
  if (settings.operatorToken === null || !request.url.includes(PREFIX)) return null;
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith(PREFIX)) return null;
  return answer(pathname.slice(PREFIX.length), request, env, settings);
}

async function answer(what, request, env, settings) {
  const { region } = settings;
  if (!(await isOperator(request, settings.operatorToken))) {
    return problem(401, "this needs the operator's token as a bearer");
  }
  if (region.shards === 0) return problem(404, "the region is a service: ask it there");
  const all = (act) => Promise.all([...Array(region.shards).keys()].map((n) => act(region.object(env, n))));
  switch (`${request.method} ${what}`) {
    case "GET status":
      return Response.json(await all((object) => object.status()));
    case "PUT rules": {
      if (region.upstream !== null) {
        return problem(409, `rules are set above, at ${region.upstream.urls.map((url) => url.origin).join(" or ")}`);
      }
      const rules = new Uint8Array(await request.arrayBuffer());
      try {
        await all((object) => object.enforce(rules));
      } catch (error) {
        return problem(400, error.message);
      }
      return Response.json({ objects: region.shards });
    }
    default:
      return problem(404, "known are GET status and PUT rules");
  }
}

// Hashes first: then both have one length, and nothing is told by the time it takes.
async function isOperator(request, token) {
  const given = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
  const hash = (text) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const [one, other] = await Promise.all([hash(given), hash(token)]);
  return crypto.subtle.timingSafeEqual(one, other);
}

function problem(status, detail) {
  const headers = { "content-type": "application/problem+json" };
  return new Response(JSON.stringify({ status, detail }), { status, headers });
}
