// One HTTP request to one URL and its reply. http:// and https:// (system CAs, TLS 1.2 or later);
// redirects are not followed; the connection is closed afterwards. Bounds: `limit` covers
// everything but the system's name resolution; a reply is at most kHttpBody_bytes_max.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/http.hpp"

#include <string>

namespace troupe::net {

// Any status is a reply. Errors: kConfig (the URL), kPeerLost (no connection, or it broke),
// kDeadline, kData (the answer is not HTTP, or too large).
async::task<core::Result<HttpReply>> http_post_json(std::string url,
                                                    std::string body,
                                                    core::Duration limit,
                                                    HttpHeaders headers);

// The same for a thread that may block, and is no io thread.
core::Result<HttpReply> http_post_json_blocking(const std::string& url,
                                                std::string body,
                                                core::Duration limit,
                                                HttpHeaders headers = {});

}  // namespace troupe::net
