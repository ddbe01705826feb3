#include "actors/environment/openenv_environment.hpp"

#include "actors/environment/environment_messages.hpp"
#include "actors/environment/episode_room.hpp"
#include "actors/environment/limits.hpp"
#include "actors/environment/openenv_messages.hpp"
#include "runtime/core/at_exit.hpp"
#include "runtime/net/http_client.hpp"
#include "runtime/net/url.hpp"
#include "runtime/net/websocket_client.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <algorithm>

namespace troupe::actors::environment {
namespace {

using Json = nlohmann::json;
using net::WebSocketClient;

constexpr core::Duration kGoodbye = std::chrono::seconds(1);

// What the environment and its episodes share.
struct OpenEnvShared {
  OpenEnvOptions options;
  Json action, reset;  // the templates; `action` null: by the tool
  std::string where;   // "OpenEnv server URL"
  RoleContext context;
  std::optional<async::Notifier> ended;  // an episode ended, so the server has room again
  std::uint64_t waits = 0, lost = 0;
  EpisodeRoom room;
  std::size_t asked = 0;    // messages that wait for their answer
  core::TimePoint heard{};  // when the last answer came
};
using SharedOpenEnv = std::shared_ptr<OpenEnvShared>;
using OpenEnvClient = std::shared_ptr<WebSocketClient>;

async::task<void> say_goodbye(SharedOpenEnv shared, OpenEnvClient client) {
  const auto until = async::Deadline::after(*shared->context.timers, kGoodbye);
  auto sent = co_await client->send(openenv_message("close", Json()), until);
  if (sent) co_await client->close(until);
  client.reset();
  shared->ended->notify_all();
}

// One message and its answer. Errors: those of read_openenv_answer and of WebSocketClient; kClosed
// for a message that is late, while others wait and none was answered since it was sent: any of
// them may hang the server.
async::task<core::Result<OpenEnvAnswer>> exchange_message(SharedOpenEnv shared,
                                                          OpenEnvClient client,
                                                          std::string message,
                                                          async::Deadline deadline) {
  const core::TimePoint begin = shared->context.timers->now();
  ++shared->asked;
  const core::AtExit answered([shared] { --shared->asked; });
  auto sent = co_await client->send(std::move(message), deadline);
  // A server that refused the connection has said why, and may have closed its end by now.
  auto text = co_await client->receive(deadline);
  if (text) {
    shared->heard = shared->context.timers->now();
    co_return read_openenv_answer(*text);
  }
  core::Error error = sent ? text.error() : sent.error();
  const bool silent = shared->asked > 1 && shared->heard <= begin;
  if (error.code == ErrorCode::kDeadline && silent) error.code = ErrorCode::kClosed;
  co_return core::fail(std::move(error));
}

class OpenEnvEpisode final : public Episode {
 public:
  OpenEnvEpisode(SharedOpenEnv shared, std::size_t company)
      : shared_(std::move(shared)), company_(company) {
    shared_->room.enter(company_);
  }
  ~OpenEnvEpisode() override {
    shared_->room.leave(company_);
    if (client_ && !busy_) {
      shared_->context.scope->spawn("", say_goodbye(shared_, std::move(client_)));
    } else {
      shared_->ended->notify_all();
    }
  }

  void connected(OpenEnvClient client) { client_ = std::move(client); }

  async::task<core::Result<EnvironmentTurn>> step(PolicyTurn turn,
                                                  async::Deadline deadline) override {
    if (!client_) {
      co_return core::fail(ErrorCode::kPeerLost, shared_->where + ": the episode is over");
    }
    const Json calls = tool_calls_of(turn);
    auto done = shared_->action.is_null() ? act(calls, deadline) : say(turn.text, deadline);
    auto answer = co_await std::move(done);
    if (!answer) {
      client_.reset();
      core::Error error = answer.error().within(shared_->where);
      shared_->lost += error.code == ErrorCode::kPeerLost;
      // The server ended, or this connection alone: who is the cause is not known.
      if (error.code == ErrorCode::kPeerLost) error.code = ErrorCode::kClosed;
      co_return core::fail(std::move(error));
    }
    if (answer->done && client_) {
      shared_->context.scope->spawn("", say_goodbye(shared_, std::move(client_)));
    }
    co_return answer;
  }

 private:
  // Marks the connection as being used.
  struct Use {
    explicit Use(bool& busy) : busy_(busy) { busy_ = true; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { busy_ = false; }
    bool& busy_;
  };

  void add(const OpenEnvAnswer& answer, EnvironmentTurn& turn) {
    if (answer.reward) {
      turn.reward = turn.reward.value_or(0.0) + *answer.reward;
      score_ = score_.value_or(0.0) + *answer.reward;
    }
    turn.score = score_;
    turn.done = answer.done;
  }

  async::task<core::Result<EnvironmentTurn>> say(std::string text, async::Deadline deadline) {
    const std::map<std::string, Json> values = {{"text", text}};
    std::string message = openenv_message("step", filled(shared_->action, values));
    const Use use(busy_);
    auto answer = co_await exchange_message(shared_, client_, std::move(message), deadline);
    if (!answer && answer.error().code == ErrorCode::kInvalidArgument) {
      co_return core::fail(ErrorCode::kData, answer.error().message,
                           "make env.openenv_action fit its action");
    }
    if (!answer) co_return answer.failure();
    EnvironmentTurn turn;
    add(*answer, turn);
    TROUPE_CO_TRY_ASSIGN(shown,
                         observation_text(answer->observation, shared_->options.observation));
    Json messages = Json::array();
    messages.push_back({{"role", "user"}, {"content", shown}});
    turn.messages = parse::written_text(messages);
    co_return turn;
  }

  // The calls one after another, up to the one that ends the episode. What the policy did wrong is
  // told to it.
  async::task<core::Result<EnvironmentTurn>> act(Json calls, async::Deadline deadline) {
    EnvironmentTurn turn;
    turn.done = calls.empty();
    turn.score = score_;
    Json messages = Json::array();
    const Use use(busy_);
    for (const Json& call : calls) {
      auto shown = co_await act_once(call, deadline, &turn);
      if (!shown) co_return shown.failure();
      Json message = {{"role", "tool"}, {"name", kActionTool}, {"content", *shown}};
      if (call.contains("id")) message["tool_call_id"] = call["id"];
      messages.push_back(std::move(message));
      if (turn.done) break;
    }
    if (!messages.empty()) {
      turn.messages = parse::written_text(messages);
    }
    co_return turn;
  }

  async::task<core::Result<std::string>> act_once(Json call,
                                                  async::Deadline deadline,
                                                  EnvironmentTurn* turn) {
    const auto wrong = [](const core::Error& error) {
      return Json{{"error", error.message}}.dump();
    };
    auto action = action_of_call(call);
    if (!action) co_return wrong(action.error());
    std::string message = openenv_message("step", *action);
    auto answer = co_await exchange_message(shared_, client_, std::move(message), deadline);
    if (!answer && answer.error().code == ErrorCode::kInvalidArgument) {
      co_return wrong(answer.error());
    }
    if (!answer) co_return answer.failure();
    add(*answer, *turn);
    co_return observation_text(answer->observation, shared_->options.observation);
  }

  const SharedOpenEnv shared_;
  const std::size_t company_;
  OpenEnvClient client_;  // null when the episode is over
  bool busy_ = false;
  std::optional<double> score_;
};

class OpenEnvEnvironment final : public Environment {
 public:
  explicit OpenEnvEnvironment(SharedOpenEnv shared) : shared_(std::move(shared)) {}

  std::string name() const override { return "the environment of " + shared_->options.openenv; }
  void begin(const RoleContext& context) override {
    shared_->context = context;
    shared_->ended.emplace(*context.timers);
  }

  async::task<core::Result<OpenedEpisode>> open(EpisodeStart start,
                                                async::Deadline deadline) override {
    const core::Duration limit = deadline.remaining(*shared_->context.timers);
    const std::size_t company = company_of(start);
    while (!shared_->room.has_room(company)) {
      const bool left = co_await shared_->ended->wait(async::Deadline::none());
      static_cast<void>(left);
    }
    // From now on the episode has its place.
    auto episode = std::make_unique<OpenEnvEpisode>(shared_, company);
    if (!deadline.is_none()) deadline = async::Deadline::after(*shared_->context.timers, limit);
    core::Duration pause = limits::kEnvironmentPause_min;
    for (;;) {
      auto opened = co_await try_open(start, episode.get(), deadline);
      const ErrorCode code = opened ? ErrorCode::kInternal : opened.error().code;
      const bool again = code == ErrorCode::kPeerLost || code == ErrorCode::kOverloaded;
      const core::TimePoint next = shared_->context.timers->now() + pause;
      if (!again || (!deadline.is_none() && deadline.at <= next)) {
        if (!opened) co_return core::fail(opened.error().within(shared_->where));
        opened->episode = std::move(episode);
        co_return opened;
      }
      ++shared_->waits;
      const async::Deadline until{next};
      const bool room = co_await shared_->ended->wait(until);
      pause = room ? limits::kEnvironmentPause_min
                   : std::min<core::Duration>(2 * pause, limits::kEnvironmentPause_max);
    }
  }

  wire::Amounts amounts() const override {
    return {{"episodes", static_cast<double>(shared_->room.size())},
            {"waits", static_cast<double>(shared_->waits)},
            {"lost", static_cast<double>(shared_->lost)}};
  }

 private:
  async::task<core::Result<void>> ensure_tools(async::Deadline deadline) {
    if (!shared_->action.is_null() || !tools_.empty()) co_return core::Result<void>();
    const core::Duration left = std::min(deadline.remaining(*shared_->context.timers),
                                         core::Duration(std::chrono::minutes(1)));
    net::HttpClient client;
    auto reply = co_await client.get_json(shared_->options.openenv + "/schema", left);
    if (!reply) co_return reply.failure();
    if (reply->status != 200) {
      co_return core::fail(ErrorCode::kData,
                           "GET /schema answered status " + std::to_string(reply->status));
    }
    TROUPE_CO_TRY_ASSIGN(tool, action_tool(reply->body));
    Json tools = Json::array();
    tools.push_back(std::move(tool));
    tools_ = parse::written_text(tools);
    co_return core::Result<void>();
  }

  async::task<core::Result<OpenedEpisode>> try_open(EpisodeStart start,
                                                    OpenEnvEpisode* episode,
                                                    async::Deadline deadline) {
    TROUPE_CO_TRY(co_await ensure_tools(deadline));
    WebSocketClient::Options limits_of_client;
    limits_of_client.message_bytes_max = limits::kObservation_bytes_max;
    auto connected = co_await WebSocketClient::connect(shared_->options.openenv + "/ws",
                                                       std::move(limits_of_client), deadline);
    if (!connected) co_return connected.failure();
    const OpenEnvClient client = std::move(*connected);
    Json row = parse::written_json<Json>(start.columns);
    if (!row.is_object()) row = Json::object();
    const std::uint64_t seed = start.seed % (std::uint64_t{1} << 31);
    const std::map<std::string, Json> values = {
        {"seed", seed}, {"prompt", start.prompt}, {"label", start.label}, {"row", row}};
    std::string message = openenv_message("reset", filled(shared_->reset, values));
    auto answer = co_await exchange_message(shared_, client, std::move(message), deadline);
    if (!answer) co_return answer.failure();
    if (answer->done) {
      co_return core::fail(ErrorCode::kData, "the episode was done before its first turn");
    }
    TROUPE_CO_TRY_ASSIGN(shown,
                         observation_text(answer->observation, shared_->options.observation));
    OpenedEpisode opened;
    opened.opening.messages = parse::written_text(openenv_prompt(start, shown));
    opened.opening.tools = tools_;
    episode->connected(client);
    co_return opened;
  }

  const SharedOpenEnv shared_;
  std::string tools_;  // JSON; empty until the schema was read
};

}  // namespace

core::Result<std::unique_ptr<Environment>> make_openenv_environment(OpenEnvOptions options) {
  auto shared = std::make_shared<OpenEnvShared>();
  while (options.openenv.ends_with('/'))
    options.openenv.pop_back();
  auto url = net::parse_url(options.openenv);
  if (!url) return core::fail(url.error().within("env.openenv"));
  shared->where = "OpenEnv server " + options.openenv;
  if (!options.action.empty()) {
    TROUPE_TRY_SET(shared->action, read_template(options.action, "env.openenv_action", {"text"}));
  }
  TROUPE_TRY_SET(shared->reset, read_template(options.reset, "env.openenv_reset",
                                              {"seed", "prompt", "label", "row"}));
  shared->options = std::move(options);
  return {std::make_unique<OpenEnvEnvironment>(std::move(shared))};
}

}  // namespace troupe::actors::environment
