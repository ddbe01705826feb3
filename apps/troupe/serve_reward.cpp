// `troupe serve-reward`: serves a reward function or rule over HTTP to OpenRLHF's clients and to
// Troupe's runs. Server and reward run on one io thread, many requests at a time as far as the
// reward can; the main thread waits for a signal. Bounds: those of HttpServer; what exceeds them
// gets 503.
#include "actors/reward/calls_host.hpp"
#include "actors/reward/http_reward.hpp"
#include "actors/reward/limits.hpp"
#include "actors/reward/reward_json.hpp"
#include "actors/reward/reward_retries.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/reward_flags.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/net/http_server.hpp"

#include <poll.h>

#include <cstdio>
#include <utility>

namespace troupe::app {
namespace {

struct Flags {
  session::RewardFlags reward;
  std::string listen = "127.0.0.1:5000";
  std::vector<std::string> endings, hosts;
  bool insecure = false;
};

// Parses --listen: "HOST:PORT", with brackets around an IPv6 address. Error kConfig: it is no such
// address, or other hosts can reach it and --insecure is not given.
Result<net::HttpServerOptions> listen_options(const Flags& flags) {
  net::HttpServerOptions options;
  auto address = session::parse_address(flags.listen, "--listen");
  if (!address) {
    return fail(ErrorCode::kConfig,
                "--listen " + flags.listen + " is not HOST:PORT, as in 127.0.0.1:5000");
  }
  std::string host = std::move(address->first);
  options.port = address->second;
  const bool loopback = host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
  if (!loopback && !flags.insecure) {
    return fail(ErrorCode::kConfig,
                "--listen " + flags.listen +
                    " can be reached from other hosts, and this protocol has no authentication",
                "tunnel to 127.0.0.1, or accept it by --insecure");
  }
  if (!loopback) {
    std::fprintf(stderr,
                 "warning: all who reach %s can use this reward; nothing is encrypted or proven\n",
                 flags.listen.c_str());
  }
  options.host = std::move(host);
  options.allowed_hosts = flags.hosts;
  return options;
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOverloaded:
    case ErrorCode::kClosed:
    case ErrorCode::kPeerLost:
      return 503;
    case ErrorCode::kDeadline:
      return 504;
    default:
      return 500;
  }
}

// Whether the error is final: the samples cannot be scored, and a retry would not help.
bool judged(ErrorCode code) {
  return status_of(code) != 503;
}

net::HttpResponse failure(int status, const std::string& message) {
  net::HttpResponse response;
  response.status = status;
  response.body = actors::reward::reward_error(message);
  return response;
}

// Answers requests. Everything runs on the one io thread.
class Service {
 public:
  Service(std::unique_ptr<actors::reward::RewardCalls> calls, std::vector<std::string> endings)
      : host_(std::move(calls)), endings_(std::move(endings)) {}

  std::string name() { return host_.calls().name(); }
  async::IoThreads& io() { return host_.io(); }

  static async::task<net::HttpResponse> respond(Service* self, net::HttpRequest request) {
    if (request.path == "/healthz" && request.method != "POST") {
      net::HttpResponse healthy;
      healthy.body = "{\"status\":\"ok\"}";
      co_return healthy;
    }
    if (request.path != "/" && request.path != "/get_reward")
      co_return failure(404, "POST to /get_reward or /, or GET /healthz");
    if (request.method != "POST") {
      net::HttpResponse refused = failure(405, "rewards are asked for by POST");
      refused.headers.emplace_back("Allow", "POST");
      co_return refused;
    }
    auto read = actors::reward::read_reward_request(request.body, self->endings_);
    if (!read) co_return failure(400, read.error().message);
    const bool nulls = net::find_header(request.headers, actors::reward::kMissingHeader) == "null";
    auto response = co_await score(self, std::move(*read), nulls);
    co_return response;
  }

 private:
  using Scores = std::vector<actors::reward::RewardScore>;

  static async::task<net::HttpResponse> score(Service* self,
                                              actors::reward::RewardRequest request,
                                              bool nulls) {
    const std::size_t count = actors::samples_in(request.groups);
    actors::reward::RewardCalls::Answer scores = Scores();
    if (count > 0) {
      auto tries = std::make_shared<actors::reward::RewardTries>();
      auto answer = co_await actors::reward::score_with_retries(
          &self->host_.calls(), std::move(request.groups), actors::reward::limits::kRewardDeadline,
          tries);
      scores = std::move(answer);
    }
    if (!scores && nulls && judged(scores.error().code)) {
      const actors::reward::RewardScore missing{std::nullopt,
                                                core::gist_of(scores.error().message)};
      scores = Scores(count, missing);
    }
    if (!scores) co_return failure(status_of(scores.error().code), scores.error().message);
    net::HttpResponse response;
    for (const auto& one : *scores) {
      if (!one.value && !nulls) response.status = 422;  // this client does not understand null
    }
    response.body = response.status == 422 ? actors::reward::reward_reply(*scores)
                                           : actors::reward::reward_reply(*scores, request.shape);
    co_return response;
  }

  actors::reward::CallsHost host_;
  const std::vector<std::string> endings_;
};

}  // namespace

Result<void> run_serve_reward(cli::Words words) {
  Flags flags;
  auto& reward = flags.reward.config.reward;
  const std::vector<cli::Flag> list = {
      {"--python", &reward.python, "file with reward_func(queries, prompts, labels)"},
      {"--interpreter", &reward.interpreter, "Python that runs --python"},
      {"--workers", &reward.workers, "processes that run --python", false, 1, 256},
      {"--rule", &reward.rule, "exact, last_number or regex"},
      {"--pattern", &reward.rule_pattern, "regular expression of --rule regex"},
      {"--listen", &flags.listen, "HOST:PORT; port 0 takes a free one"},
      {"--strip-end", &flags.endings, "text taken off the end of a response, as <|im_end|>"},
      {"--allow-host", &flags.hosts, "host name by which clients call this server"},
      {"--insecure", &flags.insecure, "listen beyond loopback, open to everybody there"}};
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags(
                   "troupe serve-reward: a reward over HTTP, in OpenRLHF's JSON or one sample's",
                   list, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(options, listen_options(flags));
  if (reward.python.empty() == reward.rule.empty()) {
    return fail(ErrorCode::kConfig,
                "troupe serve-reward: give either --python FILE or --rule KIND");
  }
  TROUPE_TRY_ASSIGN(calls, flags.reward.calls());
  Service service(std::move(calls), flags.endings);
  const std::string host =
      options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  TROUPE_TRY_ASSIGN(
      server,
      net::HttpServer::open(service.io(), std::move(options), [&service](net::HttpRequest request) {
        return Service::respond(&service, std::move(request));
      }));
  std::printf("serving the reward %s at http://%s:%u/get_reward\n", service.name().c_str(),
              host.c_str(), server->port());
  std::fflush(stdout);
  while (!cli::stop_requested())
    ::poll(nullptr, 0, 100);
  server->stop();
  std::printf("stopped\n");
  return {};
}

}  // namespace troupe::app
