// Requests and replies of HTTP/1.1 as values, for handlers and callers that never see Beast.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name, in any case; empty when there is none.
std::string_view find_header(const HttpHeaders& headers, std::string_view name);

struct HttpRequest {
  std::string method;
  std::string path;   // without the query
  std::string query;  // after '?'
  HttpHeaders headers;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;
};

struct HttpReply {
  int status = 0;
  HttpHeaders headers;
  std::string body;
};

}  // namespace troupe::net
