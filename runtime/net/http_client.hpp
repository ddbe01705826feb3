// Posts JSON to an http:// or https:// URL, or gets it from there, and returns the reply. https
// uses the system's CAs and TLS 1.2 or later. Redirects are not followed; each request has its own
// connection. Bounds: `limit` covers everything except the system's name resolution, which cannot
// be interrupted; the body of a reply has at most kHttpBody_bytes_max bytes.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/http.hpp"

#include <string>

namespace troupe::net {

// Returns the reply whatever its status. Errors: kConfig (the URL), kPeerLost (no connection, or it
// broke), kDeadline, kData (the reply is not HTTP, or too large), kResources (TLS cannot be set
// up).
async::task<core::Result<HttpReply>> http_post_json(std::string url,
                                                    std::string body,
                                                    core::Duration limit,
                                                    HttpHeaders headers);

// The same by GET.
async::task<core::Result<HttpReply>> http_get_json(std::string url, core::Duration limit);

// http_post_json, blocking; not for io threads.
core::Result<HttpReply> http_post_json_blocking(const std::string& url,
                                                std::string body,
                                                core::Duration limit,
                                                HttpHeaders headers = {});

}  // namespace troupe::net
