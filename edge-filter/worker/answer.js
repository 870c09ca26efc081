// What a client is answered: a refusal, in the words of its protocol, or the
// origin's response with headers more.

const GRPC = /^application\/grpc($|[+;])/;

export function refused(request, { status, headers, body, grpc }) {
  const type = request.headers.get("content-type") ?? "";
  if (!GRPC.test(type)) return new Response(body, { status, headers });
  // An answer that is all trailers: a call's own status, and HTTP's 200.
  const trailers = [
    ...grpc.headers,
    ["content-type", "application/grpc"],
    ["grpc-status", String(grpc.status)],
    ["grpc-message", grpc.message.replace(/[^ -$&-~]/gu, encodeURIComponent)],
  ];
  return new Response(null, { status: 200, headers: trailers });
}

// A response's own headers are not to be changed; a copy's are. What has become a
// WebSocket has no headers to add to.
export function withHeaders(response, headers) {
  if (headers.length === 0 || response.status === 101) return response;
  const copy = new Response(response.body, response);
  for (const [name, value] of headers) copy.headers.set(name, value);
  return copy;
}
