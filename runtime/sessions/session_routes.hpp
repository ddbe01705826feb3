// The paths of sessions over HTTP: opening one, its calls in each API, its rewards, its trace and
// its end. A session is named in the path (/sessions/ID/v1/...) or by its key, which the client
// sends as its API key and which opens no other. A session that was opened with "in_path" takes its
// key in the path, too (/sessions/KEY/v1/...). On the HTTP server's strand.
#pragma once

#include "runtime/sessions/session_calls.hpp"
#include "runtime/sessions/session_key.hpp"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::sessions {

struct OpenedSession {
  std::shared_ptr<Session> session;
  std::shared_ptr<dialects::Sampler> sampler;  // answers its calls
  std::optional<std::size_t> owner{};          // the key of the server that opened it
  std::string task{};  // JSON: what its client is to do; empty: what it likes
  SessionLock lock{};
};

// Who asks.
struct SessionClient {
  std::optional<std::size_t> key;                // of the server
  dialects::GenerationEvents* events = nullptr;  // told of the calls; outlives them
  std::string base{};                            // the server's address: "http://127.0.0.1:8000"
  std::uint32_t owner = 0;  // whose share of the engine its calls take; 0: no owner's
};

// Who owns the sessions of a server.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  // Opens a session. `owner`: the key of who asks. `in_path`: of its lock. Errors: kOverloaded
  // (there are as many as there may be), kInvalidArgument (others open them).
  virtual core::Result<OpenedSession> open(std::optional<std::size_t> owner, bool in_path) = 0;
  virtual std::optional<OpenedSession> find(std::string_view id) = 0;
  // The session's client has asked for something.
  virtual void used(std::string_view id) = 0;
};

class SessionRoutes {
 public:
  // Both outlive the routes.
  SessionRoutes(const SessionCallParts& parts, SessionHost& host) : parts_(parts), host_(host) {}

  // Where a request goes: to a session, if it names one by path or key, and then to which path of
  // the API or of the session.
  struct Place {
    bool opens = false;                    // POST /sessions
    std::optional<OpenedSession> session;  // of the others
    std::string id;                        // as the path named it
    bool let_in = false;                   // the request has the session's key
    std::string path;  // "/v1/chat/completions", "/reward"; of the session itself: ""
  };
  // Nothing if the request is none of sessions. `key`: of the request's Authorization, or
  // x-api-key.
  std::optional<Place> place_of(std::string_view path, std::string_view key);

  // The answer to a request of a session without its key.
  static net::HttpResponse refuse_stranger(const Place& place);
  // Answers a request of a session that lets its client in. Do not call it with a path that only
  // reads the server ("/v1/models").
  static async::task<net::HttpResponse> respond(SessionRoutes* self,
                                                net::HttpRequest request,
                                                Place place,
                                                SessionClient client);
  // Whether a path within a session is answered here, and not as that of the server.
  static bool takes(std::string_view path);

 private:
  net::HttpResponse open(const net::HttpRequest& request, const SessionClient& client);
  net::HttpResponse reward(const net::HttpRequest& request, const OpenedSession& session);

  const SessionCallParts& parts_;
  SessionHost& host_;
};

}  // namespace troupe::sessions
