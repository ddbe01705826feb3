// Runs one request for samples: submits a group of samples for each prompt, builds
// the answer from the groups' news, and aborts unfinished groups when the client disconnects or the
// request fails. Shared by the handler and the stream of its response; on the HTTP server's strand.
#pragma once

#include "runtime/async/notifier.hpp"
#include "runtime/dialects/answer.hpp"
#include "runtime/dialects/sampler.hpp"
#include "runtime/net/http.hpp"

#include <map>
#include <memory>

namespace troupe::dialects {

// Keeps what a generation draws, and hears whether its client got it; if it was not `delivered`
// when it is destroyed, the client did not. On the HTTP server's strand.
class GenerationRecord {
 public:
  virtual ~GenerationRecord() = default;
  // Called before the client is told that the sample has ended.
  virtual core::Result<void> sample(const std::string& answer_id,
                                    std::size_t choice,
                                    const engine::Sample& sample) = 0;
  virtual void delivered() = 0;  // all of the answer was handed to the network
};

// What all generations share. These objects outlive every Generation.
struct GenerationParts {
  const ServedModel& model;
  Sampler& sampler;
  GenerationEvents& events;
  async::Timers& timers;
  std::uint32_t owner = 0;  // whose share of the engine its groups take
};

class Generation {
 public:
  Generation(const GenerationParts& parts,
             GenerateRequest request,
             Encoded encoded,
             core::TimePoint began,
             std::unique_ptr<GenerationRecord> record = nullptr);
  ~Generation();  // aborts unfinished groups
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Runs the request. Returns the whole answer, or a stream as soon as it has its first events, or
  // an error in the form of its API. `client` may be null.
  static async::task<net::HttpResponse> respond(std::shared_ptr<Generation> self,
                                                std::shared_ptr<net::HttpPresence> client);

 private:
  class Events;
  // What the listeners of the groups have received and `advance` has not handled yet.
  struct Mail {
    explicit Mail(async::Timers& timers) : changed(timers) {}
    std::vector<engine::GroupNews> news;
    bool gone = false;  // the client has disconnected
    async::Notifier changed;
  };
  struct GroupPlace {
    std::size_t prompt = 0;  // index of the group's prompt
    std::int32_t left = 0;   // samples that have not finished
  };

  std::size_t choice_of(std::size_t prompt, const engine::Sample& sample) const {
    return prompt * static_cast<std::size_t>(request_.n) + static_cast<std::size_t>(sample.index);
  }
  void submit(async::Executor executor);
  // Waits for news and adds it to the answer. Returns false once the client has disconnected.
  static async::task<bool> advance(Generation* self);
  void take(engine::GroupNews news);
  void take_sample(std::size_t prompt, const engine::Sample& sample);
  void fail(const core::Error& error);
  bool over() const { return error_ || groups_.empty(); }

  GenerationParts parts_;
  const GenerateRequest request_;
  Encoded encoded_;
  const core::TimePoint began_;
  const AnswerName name_;
  const std::unique_ptr<Answer> answer_;
  const std::unique_ptr<GenerationRecord> record_;  // may be null
  std::shared_ptr<Mail> mail_;
  std::map<std::uint64_t, GroupPlace> groups_;  // unfinished groups, by id
  std::string events_;                          // events that were not sent yet
  std::optional<ApiError> error_;
};

}  // namespace troupe::dialects
