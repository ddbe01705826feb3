#include "actors/environment/call_sampler.hpp"

#include "actors/protocol/ask.hpp"
#include "actors/protocol/call_values.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/engine/token_guide.hpp"

namespace troupe::actors::environment {
namespace {

// FNV-1a.
std::uint64_t digest_of(const std::vector<std::int32_t>& tokens) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  for (const std::int32_t token : tokens)
    digest = (digest ^ static_cast<std::uint32_t>(token)) * 0x100000001b3u;
  return digest;
}

}  // namespace

void CallSampler::submit(engine::GroupRequest request,
                         bool,
                         async::Executor executor,
                         Listener listener) {
  auto asked =
      std::make_shared<Asked>(Asked{std::move(request), std::move(executor), std::move(listener)});
  async::post(context_.scope->executor(), [self = shared_from_this(), asked] {
    self->context_.scope->spawn("", answer(self, asked));
  });
}

std::uint64_t CallSampler::seed_of(const engine::GroupRequest& request, std::uint64_t sample) {
  const std::uint64_t digest = digest_of(request.prompt);
  const std::uint64_t times = sample == 0 ? asked_[digest]++ : asked_[digest] - 1;
  return core::derive_seed(core::derive_seed(order_.task->seed, order_.index), digest, times,
                           sample);
}

Complete CallSampler::call_of(const engine::GroupRequest& request, std::uint64_t seed) {
  Complete out;
  out.ticket = order_.task->ticket;
  out.session = session_number(order_);
  out.number = calls_++;
  out.prompt = request.prompt;
  out.seed = seed;
  out.version_min = order_.version_min;
  out.sampling = policy_sampling(order_.sampling, request.sampling);
  if (request.guide) {
    out.grammar = request.guide->source();
    out.sampling.kept_mass = true;
  }
  return out;
}

async::task<void> CallSampler::answer(std::shared_ptr<CallSampler> self,
                                      std::shared_ptr<Asked> asked) {
  const engine::GroupRequest& request = asked->request;
  engine::GroupNews news;
  news.group = request.id;
  for (std::int32_t i = 0; i < request.samples && !news.error; ++i) {
    if (self->closed_) {
      news.error = core::Error{core::ErrorCode::kClosed, "the episode is over"};
      break;
    }
    Complete call = self->call_of(request, self->seed_of(request, static_cast<std::uint64_t>(i)));
    auto completed = co_await ask(self->context_, kCallPeer, std::move(call));
    if (!completed) {
      news.error = without_name(completed.error(), kCallPeer);
      break;
    }
    if (!completed->versions.empty()) self->version_ = completed->versions.back();
    engine::Sample& sample = news.finished.emplace_back(sample_of(std::move(*completed)));
    sample.group = request.id;
    sample.index = i;
  }
  news.first_token = !news.finished.empty();
  const auto held = std::make_shared<engine::GroupNews>(std::move(news));
  async::post(asked->executor, [listener = asked->listener, held] { listener(std::move(*held)); });
}

}  // namespace troupe::actors::environment
