// Hosts an environment as its role does, and lets a test open many episodes at a time.
#pragma once

#include "actors/environment/environment.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::environment {

constexpr core::Duration kAmpleTime = std::chrono::minutes(5);

// The lines that an environment says, collected.
class SaidLines {
 public:
  std::function<void(const std::string&)> hook() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  std::size_t holding(const std::string& text) const {
    std::size_t count = 0;
    for (const std::string& line : lines())
      count += line.find(text) != std::string::npos;
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

class EnvironmentStage {
 public:
  // An episode, which the stage keeps: it is used and destroyed where the environment is.
  struct Held {
    Episode* episode = nullptr;
    EnvironmentTurn opening;
  };
  using Opened = core::Result<Held>;
  using Turn = core::Result<EnvironmentTurn>;

  explicit EnvironmentStage(std::unique_ptr<Environment> environment)
      : environment_(std::move(environment)), scope_(io_.make_strand()) {
    context_.scope = &scope_;
    context_.device = &device_;
    context_.timers = &timers_;
    if (environment_) run(begin(environment_.get(), context_));
  }
  ~EnvironmentStage() {
    run(end(this));
    io_.join();
  }

  template <class T>
  T run(async::task<T> body) {
    return io_.run(async::run_on(scope_.executor(), std::move(body)));
  }
  const RoleContext& context() const { return context_; }

  Opened open(EpisodeStart start = {}, core::Duration time = kAmpleTime) {
    std::vector<Opened> opened = open_all({std::move(start)}, time);
    return std::move(opened.front());
  }
  // All at the same time.
  std::vector<Opened> open_all(std::vector<EpisodeStart> starts, core::Duration time = kAmpleTime) {
    std::vector<Opened> out;
    for (std::size_t i = 0; i < starts.size(); ++i)
      out.push_back(core::fail(core::ErrorCode::kInternal, "not opened"));
    run(open_each(this, std::move(starts), time, &out));
    return out;
  }
  // Begins to open one, and comes back before it is open; `opened` waits for it.
  using Opening = std::shared_ptr<async::Oneshot<Opened>>;
  Opening open_beside(EpisodeStart start) {
    auto opening = std::make_shared<async::Oneshot<Opened>>();
    run(begin_open(this, std::move(start), opening));
    return opening;
  }
  Opened opened(Opening opening) { return run(taken(std::move(opening))); }
  Turn step(Held& opened, const std::string& text, core::Duration time = kAmpleTime) {
    return std::move(step_all({&opened}, {text}, time).front());
  }
  std::vector<Turn> step_all(std::vector<Held*> episodes,
                             std::vector<std::string> texts,
                             core::Duration time = kAmpleTime) {
    std::vector<Turn> out(episodes.size(), core::fail(core::ErrorCode::kInternal, "no step"));
    run(step_each(this, std::move(episodes), std::move(texts), time, &out));
    return out;
  }
  Turn finish(Held& opened) { return run(finish_one(this, opened.episode)); }
  void drop(Held& opened) { run(drop_one(this, opened.episode)); }

  std::string modules() { return run(modules_of(environment_.get())); }
  double amount(const std::string& name) {
    const wire::Amounts amounts = run(amounts_of(environment_.get()));
    const double* const found = wire::find_amount(amounts, name);
    return found == nullptr ? -1 : *found;
  }

 private:
  using Done = core::Result<void>;
  static async::task<std::string> modules_of(Environment* environment) {
    co_return environment->take_modules();
  }
  static async::task<void> begin(Environment* environment, RoleContext context) {
    environment->begin(context);
    co_return;
  }
  static async::task<void> end(EnvironmentStage* self) {
    self->scope_.cancel();
    (void)co_await self->scope_.join();
    self->kept_.clear();
    self->environment_.reset();
  }
  async::Deadline after(core::Duration time) { return async::Deadline::after(timers_, time); }

  static async::task<void> open_each(EnvironmentStage* self,
                                     std::vector<EpisodeStart> starts,
                                     core::Duration time,
                                     std::vector<Opened>* out) {
    std::vector<async::task<Done>> tasks;
    for (std::size_t i = 0; i < starts.size(); ++i)
      tasks.push_back(open_one(self, starts[i], time, &(*out)[i]));
    (void)co_await async::all(std::move(tasks));
  }
  static async::task<Done> open_one(EnvironmentStage* self,
                                    EpisodeStart start,
                                    core::Duration time,
                                    Opened* out) {
    auto opened = co_await self->environment_->open(std::move(start), self->after(time));
    if (!opened) {
      *out = opened.failure();
      co_return Done();
    }
    self->kept_.push_back(std::move(opened->episode));
    Held held;
    held.episode = self->kept_.back().get();
    held.opening = std::move(opened->opening);
    *out = std::move(held);
    co_return Done();
  }
  static async::task<void> begin_open(EnvironmentStage* self, EpisodeStart start, Opening opening) {
    self->scope_.spawn("", open_apart(self, std::move(start), std::move(opening)));
    co_return;
  }
  static async::task<void> open_apart(EnvironmentStage* self, EpisodeStart start, Opening opening) {
    Opened out = core::fail(core::ErrorCode::kInternal, "not opened");
    auto opened = open_one(self, std::move(start), kAmpleTime, &out);
    (void)co_await std::move(opened);
    opening->set(std::move(out));
  }
  static async::task<Opened> taken(Opening opening) {
    auto opened = co_await async::Oneshot<Opened>::take(std::move(opening));
    co_return opened;
  }
  static async::task<void> step_each(EnvironmentStage* self,
                                     std::vector<Held*> episodes,
                                     std::vector<std::string> texts,
                                     core::Duration time,
                                     std::vector<Turn>* out) {
    std::vector<async::task<Done>> tasks;
    for (std::size_t i = 0; i < episodes.size(); ++i) {
      Episode* const episode = episodes[i]->episode;
      tasks.push_back(step_one(self, episode, texts[i], time, &(*out)[i]));
    }
    (void)co_await async::all(std::move(tasks));
  }
  // A text that is a JSON object is the policy's message.
  static async::task<Done> step_one(
      EnvironmentStage* self, Episode* episode, std::string text, core::Duration time, Turn* out) {
    PolicyTurn turn;
    turn.text = text;
    turn.message = nlohmann::json{{"role", "assistant"}, {"content", text}}.dump();
    if (nlohmann::json::parse(text, nullptr, false).is_object()) turn.message = text;
    auto answer = co_await episode->step(std::move(turn), self->after(time));
    *out = std::move(answer);
    co_return Done();
  }
  static async::task<Turn> finish_one(EnvironmentStage* self, Episode* episode) {
    auto answer = co_await episode->finish(self->after(kAmpleTime));
    co_return answer;
  }
  static async::task<void> drop_one(EnvironmentStage* self, Episode* episode) {
    self->kept_.remove_if([&](const auto& one) { return one.get() == episode; });
    co_return;
  }
  static async::task<wire::Amounts> amounts_of(Environment* environment) {
    co_return environment->amounts();
  }

  async::IoThreads io_{1};
  async::SteadyTimers timers_;
  async::DeviceThread device_{"environment"};
  RoleContext context_;
  std::unique_ptr<Environment> environment_;
  std::list<std::unique_ptr<Episode>> kept_;
  async::Scope scope_;
};

}  // namespace troupe::actors::environment
