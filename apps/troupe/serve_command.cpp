// `troupe serve`: serves a model by OpenAI's HTTP API; with --join the policy of a run while it
// learns. Threads: one of io, two that tokenize, one that drives the engine, and the team that
// computes; with --join also those of a node and one that fetches weights. The main thread waits
// for the end.
#include "actors/environment/environment_role.hpp"
#include "actors/environment/policy_sampler.hpp"
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/serving/api_service.hpp"
#include "apps/serving/run_follower.hpp"
#include "apps/serving/serve_options.hpp"
#include "apps/session/node/node_process.hpp"
#include "apps/session/node/tunnel_subscriber.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/ask_company.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/rejoining.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/weights/remote_subscriber.hpp"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <utility>

namespace troupe::app {
namespace {

// Owns the parts of the server: port, service, engine and model. `open` takes the port before the
// model is loaded, so that a wrong port shows at once; until `begin` every request gets 503. `stop`
// closes the port first, then stops the engine.
class Serving {
 public:
  explicit Serving(const serving::ServeOptions& options) : options_(options), io_(1) {}
  ~Serving() { stop(); }

  // Takes the port. Errors name the flag.
  Result<void> open() {
    TROUPE_TRY_ASSIGN(listen, options_.listen());
    auto server = net::HttpServer::open(io_, std::move(listen), [this](net::HttpRequest request) {
      serving::ApiService* const service = ready_.load();
      return service == nullptr ? loading(request.path)
                                : serving::ApiService::respond(service, std::move(request));
    });
    if (!server) {
      const std::string port = "--port " + std::to_string(options_.port);
      const bool taken = server.error().code == ErrorCode::kResources;
      return fail(server.error().within(taken ? port : "--host " + options_.host + ", " + port));
    }
    server_ = std::move(*server);
    return {};
  }
  void furnish(std::unique_ptr<cli::EngineHost> host,
               dialects::ServedModel model,
               std::unique_ptr<engine::EngineDriver> driver,
               serving::ApiKeys keys,
               bool can_reload,
               actors::environment::EpisodeSessions* episodes = nullptr) {
    host_ = std::move(host);
    model_.emplace(std::move(model));
    pump_.emplace(io_, std::move(driver));
    serving::ApiServiceParts parts{.model = *model_, .pump = *pump_, .keys = std::move(keys)};
    parts.episodes = episodes;
    if (!options_.certificate_file.empty()) parts.scheme = "https://";
    if (options_.history == "keep") parts.history = sessions::History::kKeep;
    parts.bounds = options_.bounds;
    parts.bounds.n_max = options_.sequences;
    parts.bounds.processed_logprobs = options_.logprobs_mode == "processed_logprobs";
    if (options_.dtype.starts_with("bf16")) parts.dtype = "torch.bfloat16";
    parts.bounds.tokens_max = static_cast<std::size_t>(model_->context);
    parts.loopback = options_.loopback();
    parts.requests_max = static_cast<std::size_t>(options_.connections);
    if (can_reload) parts.reload = [this] { return host_->pack_weights(); };
    service_.emplace(std::move(parts));
  }
  void begin() {
    ready_ = &*service_;
    if (!model_->tokenizer)
      cli::say("no tokenizer: prompts and answers are token ids, without text");
    cli::say("serving " + model_->names.front() + " at " + options_.address(server_->port()));
  }
  void stop() {
    if (server_) server_->stop();
    if (pump_) pump_->stop();
  }
  serving::EnginePump& pump() { return *pump_; }
  const dialects::ServedModel& model() const { return *model_; }

 private:
  static async::task<net::HttpResponse> loading(std::string path) {
    co_return serving::ApiService::complaint(503, "the model is being loaded", path);
  }

  const serving::ServeOptions& options_;
  std::unique_ptr<cli::EngineHost> host_;
  std::optional<dialects::ServedModel> model_;
  async::IoThreads io_;
  std::optional<serving::EnginePump> pump_;
  std::optional<serving::ApiService> service_;
  std::atomic<serving::ApiService*> ready_ = nullptr;
  std::unique_ptr<net::HttpServer> server_;
};

Result<void> serve_alone(const serving::ServeOptions& options, serving::ApiKeys keys) {
  TROUPE_TRY_ASSIGN(dtype,
                    cli::panel_dtype("troupe serve", options.dtype, options.placement.device));
  Serving serving(options);
  TROUPE_TRY(serving.open());
  TROUPE_TRY_ASSIGN(host, cli::EngineHost::load(options.model, options.placement, options.limits(),
                                                dtype, options.tokenizer_use()));
  TROUPE_TRY_ASSIGN(model, options.served_model(*host));
  auto driver = host->take_driver();
  serving.furnish(std::move(host), std::move(model), std::move(driver), std::move(keys), true);
  serving.begin();
  while (!cli::stop_requested())
    ::poll(nullptr, 0, 100);
  serving.stop();
  cli::say("stopped");
  return {};
}

// Episodes of the run take the sessions of this server, whose engine draws their calls with weights
// that are new enough.
class Learning {
 public:
  Learning(const serving::ServeOptions& options, Serving& serving)
      : serving_(serving),
        episodes_(timers_, {}, [this](const actors::environment::EpisodeOrder& order) {
          return sampler_of(order);
        }) {
    settings_.reward_timeout = config::Seconds(options.reward_timeout_s);
    settings_.episode_timeout_s = std::chrono::hours(24);
    settings_.needs_reward = true;
  }

  actors::environment::EpisodeSessions& episodes() { return episodes_; }
  // Any thread. False: no episode is drawn from, since the weights here may not be the run's.
  void follows(bool does) { follows_ = does; }

  cluster::RoleHost::Factory factory() {
    return actors::factory_of<actors::environment::EnvironmentRole>(
        [this](actors::RoleContext context) {
          actors::environment::EnvironmentParts parts;
          parts.model = {std::shared_ptr<void>(), &serving_.model()};
          parts.sessions = {std::shared_ptr<void>(), &episodes_};
          parts.settings = settings_;
          parts.episodes_max = serving::limits::kServeLearning;
          parts.note = &cli::say;
          return std::make_shared<actors::environment::EnvironmentRole>(std::move(context),
                                                                        std::move(parts));
        });
  }

 private:
  Result<std::shared_ptr<dialects::Sampler>> sampler_of(
      const actors::environment::EpisodeOrder& order) {
    // A run that came back may have gone back to earlier weights.
    if (!follows_ || serving_.pump().version() < order.version_min)
      return fail(ErrorCode::kOverloaded, "the weights here are too far behind the run's");
    return std::shared_ptr<dialects::Sampler>(
        std::make_shared<actors::environment::PolicySampler>(serving_.pump(), order.sampling));
  }

  Serving& serving_;
  async::SteadyTimers timers_;
  std::atomic<bool> follows_ = false;
  actors::environment::EpisodeSettings settings_;
  actors::environment::EpisodeSessions episodes_;
};

// The server as a guest of a run: the run never waits for it. While the run is away it serves what
// it has.
class Guest {
 public:
  Guest(const serving::ServeOptions& options, Serving& serving, kernels::PanelDtype dtype)
      : options_(options), serving_(serving), dtype_(dtype) {
    if (options.learn) learning_.emplace(options, serving);
  }

  Result<void> furnish(serving::ApiKeys keys) {
    TROUPE_TRY_ASSIGN(host, cli::EngineHost::prepare(options_.model, options_.placement,
                                                     options_.tokenizer_use()));
    TROUPE_TRY_ASSIGN(model, options_.served_model(*host));
    auto driver = host->make_driver(options_.limits());
    host_ = host.get();
    serving_.furnish(std::move(host), std::move(model), std::move(driver), std::move(keys), false,
                     learning_ ? &learning_->episodes() : nullptr);
    return {};
  }

  // Joins the run again after each loss, until the run no longer needs the server.
  Result<void> stay() {
    Rejoining rejoining({"this server", options_.join, !options_.guest.any_run, false,
                         options_.guest.wait_s, "stopped", "the run ended"});
    for (;;) {
      auto end = stay_once(rejoining);
      auto over = rejoining.next(end);
      if (!over) continue;
      const bool stopped = !*over && over->error().code == ErrorCode::kInterrupted;
      if (stopped) cli::say("stopped");
      return stopped ? Result<void>() : *over;
    }
  }

 private:
  Result<session::NodeEnd> stay_once(Rejoining& rejoining) {
    TROUPE_TRY_ASSIGN(target, rejoining.find());
    async::IoThreads io(1);
    async::DeviceThread fetch("fetch");
    const auto subscriber = std::make_shared<session::TunnelSubscriber>(
        io, target,
        std::make_shared<weights::RemoteWeightSubscriber>(
            host_->spec(), dtype_, weights::own_host_id(), host_->team().memory()));
    const cluster::RoleHost::Factory follow = [&](const cluster::RoleServices& services) {
      return Result<std::unique_ptr<cluster::Role>>(std::make_unique<serving::RunFollower>(
          serving_.pump(), subscriber, fetch, &cli::say, [this] { follows(true); },
          actors::context_of(services)));
    };
    session::NodeSelf self;
    self.name = "node/serve-" + number_;
    self.kinds = {"serve"};
    if (learning_) self.kinds.push_back("learn");
    std::unique_ptr<cluster::RoleHost> follower, environment;
    session::NodeCalls calls;
    calls.note = &cli::say;
    calls.once_in = [&](const session::NodeGuest& guest) -> Result<bool> {
      rejoining.joined(guest);
      TROUPE_TRY_SET(follower, guest.host("serve/" + number_, follow, nullptr));
      if (learning_) {
        const std::string name = "environment/serve-" + number_;
        TROUPE_TRY_SET(environment, guest.host(name, learning_->factory(), nullptr));
      }
      if (!std::exchange(begun_, true)) serving_.begin();
      rejoining.settled();
      return true;
    };
    calls.before_end = [&](const session::NodeGuest& guest) {
      follows(false);
      if (environment) guest.stop(environment);
      guest.stop(follower);
    };
    auto end =
        session::live_through_gateway(io, target, rejoining.bound(std::move(self), target), calls);
    fetch.close();
    return end;
  }

  // Whether the weights here are those of the run as it is now.
  void follows(bool does) {
    if (learning_) learning_->follows(does);
  }

  const serving::ServeOptions& options_;
  Serving& serving_;
  const kernels::PanelDtype dtype_;
  const std::string number_ = std::to_string(::getpid());
  cli::EngineHost* host_ = nullptr;  // of `serving_`
  std::optional<Learning> learning_;
  bool begun_ = false;
};

Result<void> serve_live(const serving::ServeOptions& options, serving::ApiKeys keys) {
  TROUPE_TRY_ASSIGN(dtype,
                    cli::panel_dtype("troupe serve", options.dtype, options.placement.device));
  TROUPE_TRY(session::find_company(options.join));
  Serving serving(options);
  TROUPE_TRY(serving.open());
  Guest guest(options, serving, dtype);
  TROUPE_TRY(guest.furnish(std::move(keys)));
  auto stayed = guest.stay();
  serving.stop();
  return stayed;
}

}  // namespace

Result<void> run_serve(cli::Words words) {
  serving::ServeOptions options;
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags(
                   "troupe serve: a model over HTTP, in OpenAI's and Anthropic's APIs; with --join "
                   "the policy of a run",
                   options.flags(), words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(keys, serving::ApiKeys::gather(options.keys, options.key_file));
  TROUPE_TRY(options.check_listen(keys));
  if (options.learn && options.join.join.empty())
    return fail(ErrorCode::kConfig, "--learn goes with --join: a run is what learns");
  if (options.guest.any_run && options.join.join.empty())
    return fail(ErrorCode::kConfig, "--any-run goes with --join: there is no run to follow");
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(options.model));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  TROUPE_TRY(options.check_model(spec));
  TROUPE_TRY(options.check_tokenizer(folder));
  return options.join.join.empty() ? serve_alone(options, std::move(keys))
                                   : serve_live(options, std::move(keys));
}

}  // namespace troupe::app
