#include "actors/environment/episode_run.hpp"

#include "actors/protocol/ask.hpp"
#include "actors/protocol/call_values.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/sessions/said.hpp"
#include "runtime/text/unseen_tools.hpp"

#include <algorithm>

namespace troupe::actors::environment {
namespace {

using OrderedJson = nlohmann::ordered_json;

core::Error error_of(const dialects::ApiError& error) {
  return {ErrorCode::kData, error.message};
}

}  // namespace

EpisodeStart start_of(const EpisodeOrder& order) {
  const EpisodeTask& task = *order.task;
  return {task.text, task.messages, task.label, task.columns, task.seed, task.row, order.losses};
}

std::uint64_t session_number(const EpisodeOrder& order) {
  const experience::Ticket& ticket = order.task->ticket;
  return core::derive_seed(ticket.update, ticket.slot, ticket.attempt, order.index);
}

EpisodeRun::EpisodeRun(const RoleContext& context,
                       const dialects::ServedModel& model,
                       const EpisodeSettings& settings,
                       Environment& environment,
                       EpisodeOrder order)
    : context_(context),
      model_(model),
      settings_(settings),
      environment_(environment),
      order_(std::move(order)),
      session_(session_number(order_)),
      messages_(OrderedJson::array()) {
  request_.dialect = dialects::Dialect::kChat;
  request_.add_special_tokens = false;
  request_.sampling.stop_strings = order_.sampling.stop;
}

async::Deadline EpisodeRun::turn_deadline() const {
  return async::Deadline::after(*context_.timers, settings_.turn_timeout_s);
}

async::task<core::Result<EpisodeEnd>> EpisodeRun::run(EpisodeRun* self) {
  auto going = self->go_on();
  TROUPE_CO_TRY(co_await std::move(going));
  self->episode_.reset();
  // A score says what all of the episode is worth, rewards of its turns included.
  self->end_.rewards.score = self->score_;
  if (self->score_ && self->settings_.turn_rewards) *self->end_.rewards.score -= self->rewards_;
  co_return std::move(self->end_);
}

async::task<core::Result<void>> EpisodeRun::go_on() {
  auto opening = environment_.open(start_of(order_), turn_deadline());
  auto opened = co_await std::move(opening);
  if (!opened) co_return failed(opened.error());
  const core::TimePoint end = context_.timers->now() + settings_.episode_timeout_s;
  episode_ = std::move(opened->episode);
  take_in(opened->opening, true);
  while (!over_) {
    if (context_.timers->now() >= end) {
      co_return core::fail(ErrorCode::kDeadline, "an episode took longer than its limit");
    }
    auto calling = one_turn();
    TROUPE_CO_TRY_ASSIGN(turn, co_await std::move(calling));
    if (!turn) break;
    ++end_.turns;
    auto stepping = episode_->step(std::move(*turn), turn_deadline());
    auto said = co_await std::move(stepping);
    if (!said) co_return failed(said.error());
    if (said->reward && last_) end_.tree.reward(*last_, *said->reward);
    take_in(*said, false);
    if (!over_ && end_.turns >= static_cast<std::uint64_t>(settings_.turns_max)) {
      end_.out_of_room = true;
      over_ = true;
    }
  }
  if (end_.out_of_room && end_.turns > 0) {
    auto finishing = episode_->finish(turn_deadline());
    auto last = co_await std::move(finishing);
    if (!last) co_return failed(last.error());
    take_in(*last, false);
  }
  if (end_.turns == 0) {
    co_return core::fail(ErrorCode::kData, environment_.name() + " gave the policy no turn");
  }
  co_return core::Result<void>();
}

core::Failure EpisodeRun::failed(const core::Error& error) {
  loss_ = loss_of(error);
  return core::fail(error);
}

void EpisodeRun::take_in(const EnvironmentTurn& turn, bool opening) {
  if (opening) offer_tools(turn.tools);
  if (turn.score) score_ = turn.score;
  rewards_ += opening ? 0 : turn.reward.value_or(0);
  if (!turn.extras.empty()) end_.extras = turn.extras;
  over_ = turn.done;
  end_.rewards.by_turn = settings_.turn_rewards;
  const std::string& messages =
      opening && turn.messages.empty() && turn.text.empty() ? order_.task->messages : turn.messages;
  if (!messages.empty()) {
    is_dialogue_ = true;
    const OrderedJson list = parse::written_json<OrderedJson>(messages);
    if (!list.is_array()) return;
    for (const OrderedJson& message : list)
      messages_.push_back(message);
    return;
  }
  if (opening && turn.text.empty()) opening_ids_ = order_.task->tokens;
  text_ = turn.text;
}

void EpisodeRun::offer_tools(const std::string& tools) {
  text::ChatInputs inputs = troupe::data::inputs_of_row(order_.task->columns);
  own_tools_ = !tools.empty();
  request_.template_variables_json = std::move(inputs.variables_json);
  request_.tools_json = own_tools_ ? tools : std::move(inputs.tools_json);
  request_.tools = !request_.tools_json.empty();
  const OrderedJson list = parse::written_json<OrderedJson>(request_.tools_json);
  if (!list.is_array()) return;
  for (const OrderedJson& tool : list) {
    const OrderedJson function = tool.value("function", OrderedJson::object());
    if (function.is_object()) request_.tool_names.insert(function.value("name", ""));
  }
}

core::Result<void> EpisodeRun::check_tools_written() const {
  text::RenderOptions options;
  options.variables_json = request_.template_variables_json;
  options.now_unix_s = settings_.now_unix_s;
  const auto without = dialects::render_chat(model_, request_.messages_json, options);
  options.tools_json = request_.tools_json;
  const auto with = dialects::render_chat(model_, request_.messages_json, options);
  const auto* bare = std::get_if<std::string>(&without);
  const auto* shown = std::get_if<std::string>(&with);
  if (bare == nullptr || shown == nullptr) return {};
  const std::string names = text::unseen_tools(*bare, *shown, request_.tools_json);
  if (names.empty()) return {};
  return core::fail(ErrorCode::kConfig,
                    "the chat template of " + model_.root + " writes nothing of the tools of " +
                        environment_.name() + " (" + names +
                        "), so the policy would never see them",
                    "put a chat_template.jinja that reads `tools` into the model folder, or name "
                    "them in the messages");
}

core::Result<EpisodeRun::Asked> EpisodeRun::prepare() {
  Asked out;
  if (is_dialogue_) {
    request_.messages_json = parse::written_text(messages_);
    if (!last_ && own_tools_) TROUPE_TRY(check_tools_written());
    auto prompt = sessions::prompt_of_call(model_, sessions::TreeCalls(end_.tree), request_,
                                           settings_.history, settings_.now_unix_s);
    if (const auto* error = std::get_if<dialects::ApiError>(&prompt))
      return core::fail(error_of(*error));
    out.prompt = std::move(std::get<sessions::CallPrompt>(prompt));
  } else {
    out.prompt.tokens = last_ ? end_.tree.sequence(*last_) : opening_ids_;
    if (last_) out.prompt.place = {*last_, end_.tree.length(*last_)};
    const bool opens = !last_ && opening_ids_.empty();
    auto more = dialects::encode_text(model_, text_, opens && settings_.front);
    if (const auto* error = std::get_if<dialects::ApiError>(&more))
      return core::fail(error_of(*error));
    const auto& ids = std::get<std::vector<std::int32_t>>(more);
    out.prompt.tokens.insert(out.prompt.tokens.end(), ids.begin(), ids.end());
  }
  if (out.prompt.tokens.empty()) {
    return core::fail(ErrorCode::kData, environment_.name() + " began an episode without a prompt");
  }
  std::int64_t most = model_.context;
  if (settings_.tokens_max > 0) most = std::min(most, settings_.tokens_max);
  out.room =
      static_cast<std::int32_t>(std::max<std::int64_t>(most - std::ssize(out.prompt.tokens), 0));
  return out;
}

Complete EpisodeRun::request_of(const Asked& asked) const {
  Complete out;
  out.ticket = order_.task->ticket;
  out.session = session_;
  out.number = end_.tree.size();
  out.prompt = asked.prompt.tokens;
  out.sampling = call_sampling(order_.sampling);
  out.sampling.max_new_tokens = std::min(out.sampling.max_new_tokens, asked.room);
  out.seed = core::derive_seed(order_.task->seed, order_.index, end_.tree.size());
  out.version_min = order_.version_min;
  return out;
}

// Nothing once there is no room for a token.
async::task<core::Result<std::optional<PolicyTurn>>> EpisodeRun::one_turn() {
  auto job = [this] { return prepare(); };
  auto preparing = context_.device->run(std::move(job));
  TROUPE_CO_TRY_ASSIGN(asked, co_await std::move(preparing));
  if (asked.room == 0) {
    end_.out_of_room = true;
    co_return std::optional<PolicyTurn>();
  }
  if (asked.prompt.rewritten) ++end_.forked_by_template;
  Complete request = request_of(asked);
  auto calling = ask(context_, kCallPeer, std::move(request));
  TROUPE_CO_TRY_ASSIGN(completed, co_await std::move(calling));
  auto reading = [this, asked = std::move(asked), completed = std::move(completed)]() mutable {
    return keep(std::move(asked), std::move(completed));
  };
  auto keeping = context_.device->run(std::move(reading));
  TROUPE_CO_TRY_ASSIGN(turn, co_await std::move(keeping));
  co_return std::optional<PolicyTurn>(std::move(turn));
}

core::Result<PolicyTurn> EpisodeRun::keep(Asked asked, Completed completed) {
  const engine::Sample sample = sample_of(std::move(completed));
  const std::string id =
      "episode-" + std::to_string(session_) + "-" + std::to_string(end_.tree.size());
  TROUPE_TRY_ASSIGN(said, sessions::said_of(model_, request_, id, 0, sample));
  if (is_dialogue_) messages_.push_back(said.message);
  last_ = end_.tree.add(asked.prompt.tokens, asked.prompt.place,
                        sessions::call_of(asked.prompt, said, sample));
  PolicyTurn turn;
  turn.text = std::move(said.text);
  turn.message = parse::written_text(said.message);
  turn.cut = sample.finish == experience::FinishReason::kLength;
  return turn;
}

}  // namespace troupe::actors::environment
