// Answers requests for samples within a session: finds the tokens of the prompt among the session's
// calls, runs the request, and adds what was drawn as a call before the client hears of its end. A
// call whose answer did not reach its client is dropped again; one that is asked for again, as SDKs
// do after a failure, takes the place of the first. On the HTTP server's strand; bodies are read
// and rendered on the threads for texts.
#pragma once

#include "runtime/dialects/generation.hpp"
#include "runtime/dialects/text_threads.hpp"
#include "runtime/net/http.hpp"
#include "runtime/sessions/session.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::sessions {

// These objects outlive every call.
struct SessionCallParts {
  const dialects::ServedModel& model;
  async::Timers& timers;
  dialects::TextThreads& text;
  const dialects::ServeBounds& bounds;
  History history = History::kTemplate;
  std::function<std::int64_t()> now_unix_s;  // the time for templates
  // Told once when the chat template changed the past of a dialogue; may be null.
  std::function<void()> forked;
  bool any_model = false;  // calls may name any model, and get this one
};

// `path`: of the API ("/v1/chat/completions"); `events` outlives the answer; `owner`: whose share
// of the engine the call takes. Errors are in the form of that API.
async::task<net::HttpResponse> answer_session_call(const SessionCallParts* parts,
                                                   std::shared_ptr<dialects::Sampler> sampler,
                                                   dialects::GenerationEvents* events,
                                                   std::uint32_t owner,
                                                   std::shared_ptr<Session> session,
                                                   net::HttpRequest request,
                                                   std::string path);

}  // namespace troupe::sessions
