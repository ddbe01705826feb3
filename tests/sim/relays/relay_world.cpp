#include "tests/sim/relays/relay_world.hpp"

#include "runtime/weights/limits.hpp"

#include <algorithm>

namespace troupe::sim {

using namespace std::chrono_literals;
using Kind = RelayTrouble::Kind;

namespace {
constexpr std::uint64_t kEvents = 20'000'000;
}  // namespace

RelayWorld::RelayWorld(RelayPlan plan)
    : plan_(std::move(plan)),
      rng_(plan_.seed, 80),
      publisher_(time_, truth_, plan_.all_reachable()),
      around_(surroundings()) {
  for (std::uint32_t i = 0; i < plan_.receivers; ++i) {
    receivers_.push_back(std::make_unique<Receiver>(around_, plan_.hosts[i], plan_.reachable[i]));
  }
}

RelayWorld::~RelayWorld() = default;

RelaySurroundings RelayWorld::surroundings() {
  RelaySurroundings around{time_, truth_, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  around.new_number = [this] { return ++numbers_; };
  around.connect = [this](Receiver& from, std::uint64_t life) {
    if (!publisher_.lives() || publisher_.life() != life || !open(from.number(), 0)) return false;
    if (!publisher_.is_connected(from.number())) publisher_.connected(from.number());
    return true;
  };
  around.disconnect = [this](Receiver& from) { disconnect(from); };
  around.ask_publisher = [this](Receiver& from, const RelayAsk& ask) {
    send(from.number(), [this, number = from.number(), ask] { answer(number, ask); });
  };
  around.report = [this](Receiver& from, const weights::Report& report) {
    const std::uint32_t number = from.number();
    send(number, [this, number, report] {
      if (open(number, 0)) publisher_.report(number, report);
    });
  };
  around.ask_relay = [this](Receiver& from, std::uint32_t relay, const RelayAsk& ask, bool memory) {
    ask_relay(from, relay, ask, memory);
  };
  around.open_stream = [this](std::uint32_t from, std::uint32_t to, ImagePtr image,
                              std::uint32_t first) {
    open_stream(from, to, std::move(image), first);
  };
  around.lend = [this](std::uint32_t from, std::uint32_t to, ImagePtr image) {
    soon([this, from, to, image = std::move(image)] {
      if (Receiver* const child = find(to)) child->lent(from, image);
    });
  };
  around.grown = [this](const ImagePtr& image) {
    for (const StreamPtr& stream : streams_) {
      if (stream->image != image || stream->from == 0) continue;
      image->abandoned ? end(*stream) : pump(stream);
    }
  };
  around.close = [](Stream& stream) { stream.over = true; };
  around.flows = [this](const Stream& stream) {
    const Receiver* const from = sender(stream);
    const bool frozen = from != nullptr && from->frozen();
    return stream.sending && !stream.over && !frozen && open(stream.from, stream.to);
  };
  around.progressed = [] {};
  return around;
}

void RelayWorld::after(core::Duration span, std::function<void()> what) {
  time_.schedule(time_.now() + span, std::move(what));
}

// As long as a message takes.
void RelayWorld::soon(std::function<void()> what) {
  after(1ms + core::Duration(rng_.next_below(4'000'000)), std::move(what));
}

// To the publisher; what a receiver sends arrives in its order.
void RelayWorld::send(std::uint32_t from, std::function<void()> what) {
  core::TimePoint& last = sent_[from];
  last = std::max(last, time_.now() + 1ms + core::Duration(rng_.next_below(4'000'000)));
  time_.schedule(last, std::move(what));
}

Receiver* RelayWorld::find(std::uint32_t number) {
  for (const auto& receiver : receivers_)
    if (receiver->alive() && receiver->number() == number) return receiver.get();
  return nullptr;
}

bool RelayWorld::open(std::uint32_t a, std::uint32_t b) {
  const Receiver* const one = find(a);
  const Receiver* const other = find(b);
  if ((a != 0 && one == nullptr) || (b != 0 && other == nullptr)) return false;
  const std::uint32_t x = one == nullptr ? 0 : one->host(),
                      y = other == nullptr ? 0 : other->host();
  return !cuts_.contains({std::min(x, y), std::max(x, y)});
}

// ---- the publisher
// -------------------------------------------------------------------------------

void RelayWorld::publish_next() {
  if (!publisher_.lives()) return;
  if (const ImagePtr oldest = publisher_.publish(plan_.buckets)) {
    for (const StreamPtr& stream : streams_) {
      if (stream->over || stream->from != 0 || stream->image != oldest) continue;
      truth_.census.count("relay", "a stream is taken back");
      publisher_.taken_back(stream->to);
      end(*stream);
    }
  }
  last_ = time_.now();
  ++published_;
  soon([this] { tell_all(); });
  if (published_ < plan_.versions) after(plan_.between, [this] { publish_next(); });
}

void RelayWorld::tell_all() {
  if (!publisher_.lives() || publisher_.newest() == 0) return;
  for (const auto& receiver : receivers_)
    receiver->told(publisher_.life(), publisher_.newest());
}

void RelayWorld::answer(std::uint32_t number, const RelayAsk& ask) {
  Receiver* const from = find(number);
  if (from == nullptr || !open(number, 0)) return;  // the answer never comes
  if (!publisher_.lives() || publisher_.life() != ask.life || !publisher_.is_connected(number))
    return from->publisher_gone();
  std::vector<StreamPtr> own;
  for (const StreamPtr& stream : streams_) {
    if (stream->from != 0 || stream->over) continue;
    if (stream->to != number) own.push_back(stream);
  }
  const Publisher::Answer answer = publisher_.ask(*from, ask, own);
  soon([this, number, answer] {
    Receiver* const there = find(number);
    if (there == nullptr || !open(number, 0)) return;
    there->directed(answer.direction);
    if (answer.image) open_stream(0, number, answer.image, answer.first);
  });
}

void RelayWorld::disconnect(Receiver& from) {
  const std::uint32_t number = from.number();
  for (const StreamPtr& stream : streams_) {
    if (stream->to == number) stream->over = true;
    if (stream->from == number && !from.alive()) end(*stream);
  }
  publisher_.gone(number);
}

void RelayWorld::restart(core::Duration pause) {
  if (!publisher_.lives()) return;
  const core::Version newest = publisher_.newest();
  const core::Version back = std::min<core::Version>(newest, rng_.next_below(3));
  publisher_.end();
  for (const StreamPtr& stream : streams_)
    if (stream->from == 0) end(*stream);
  for (const auto& receiver : receivers_)
    receiver->publisher_gone();
  after(pause, [this, last = newest - back] {
    publisher_.begin(last);
    published_ -= std::min<std::uint64_t>(published_, 1);
    publish_next();
  });
}

// ---- relays and streams
// --------------------------------------------------------------------------

void RelayWorld::ask_relay(Receiver& from, std::uint32_t relay, const RelayAsk& ask, bool memory) {
  const std::uint32_t number = from.number();
  const Receiver* const there = find(relay);
  const bool refused = there == nullptr || there->deaf;
  const bool blocked = there != nullptr && !open(number, relay);
  if (refused || blocked) {
    return after(blocked ? core::Duration(weights::limits::kRelayStuck) : 1ms,
                 [this, number, relay] {
                   if (Receiver* const asker = find(number)) asker->refused(relay);
                 });
  }
  soon([this, number, relay, ask, memory] {
    Receiver* const serves = find(relay);
    Receiver* const asker = find(number);
    if (serves != nullptr) return serves->asked(number, ask, memory);
    if (asker != nullptr) asker->refused(relay);
  });
}

void RelayWorld::open_stream(std::uint32_t from,
                             std::uint32_t to,
                             ImagePtr image,
                             std::uint32_t first) {
  std::erase_if(streams_, [](const StreamPtr& stream) { return stream->over && !stream->sending; });
  auto stream = std::make_shared<Stream>();
  stream->from = from;
  stream->to = to;
  stream->image = std::move(image);
  stream->next = first;
  streams_.push_back(stream);
  if (Receiver* const child = find(to)) {
    child->begins(stream);
  } else {
    stream->over = true;
  }
  stream->image->abandoned ? end(*stream) : pump(stream);
}

// The connection of a stream ends, and its receiver hears of it.
void RelayWorld::end(Stream& stream) {
  if (std::exchange(stream.over, true)) return;
  for (const StreamPtr& one : streams_) {
    if (one.get() != &stream) continue;
    soon([this, one] {
      if (Receiver* const child = find(one->to)) child->ended(one);
    });
  }
}

const Receiver* RelayWorld::sender(const Stream& stream) {
  return stream.from == 0 ? nullptr : find(stream.from);
}

void RelayWorld::pump_all() {
  for (const StreamPtr& stream : streams_)
    pump(stream);
}

// Sends the next bucket, if there is one and nothing holds it.
void RelayWorld::pump(const StreamPtr& stream) {
  if (stream->over || stream->sending) return;
  const Receiver* const from = sender(*stream);
  const Receiver* const to = find(stream->to);
  const bool held = from != nullptr && (from->frozen() || from->withholds);
  if (to == nullptr || held || !open(stream->from, stream->to)) return;
  if (stream->next >= stream->image->ready()) return;
  stream->sending = true;
  core::Duration takes = plan_.bucket + core::Duration(rng_.next_below(1'000'000));
  takes = std::max({takes, to->get_time, from == nullptr ? 0ms : from->give_time});
  after(takes, [this, stream] { arrive(stream); });
}

void RelayWorld::arrive(const StreamPtr& stream) {
  stream->sending = false;
  if (stream->over) return;
  if (!open(stream->from, stream->to)) return;  // it is sent again when the link is there
  const Receiver* const from = sender(*stream);
  const bool wrong = from != nullptr && from->wrong;
  const std::uint64_t bytes = stream->image->buckets[stream->next] + (wrong ? 1 : 0);
  const bool whole = ++stream->next == stream->image->all;
  Receiver* const to = find(stream->to);
  if (to != nullptr) to->bucket(stream, bytes);
  if (!whole) return pump(stream);
  stream->over = true;
  if (stream->from == 0 && publisher_.lives()) publisher_.streamed(stream->to);
}

// ---- troubles
// ------------------------------------------------------------------------------------

void RelayWorld::inject(const RelayTrouble& trouble) {
  truth_.census.count("trouble", name_of(trouble.kind));
  last_ = std::max(last_, time_.now() + trouble.span);
  Receiver& receiver = *receivers_[trouble.target - 1];
  switch (trouble.kind) {
    case Kind::kDeath:
      if (!receiver.alive()) break;
      receiver.kill();
      after(trouble.span, [this, &receiver] {
        receiver.begin();
        tell_all();
      });
      break;
    case Kind::kFreeze:
      receiver.freeze(true);
      after(trouble.span, [this, &receiver] {
        receiver.freeze(false);
        pump_all();
      });
      break;
    case Kind::kDownSlow:
      receiver.get_time = 1200ms + core::Duration(rng_.next_below(600'000'000));
      after(trouble.span, [&receiver] { receiver.get_time = 0ms; });
      break;
    case Kind::kUpSlow:
      receiver.give_time = 300ms + core::Duration(rng_.next_below(500'000'000));
      after(trouble.span, [&receiver] { receiver.give_time = 0ms; });
      break;
    case Kind::kWithhold:
      receiver.withholds = true;
      after(trouble.span, [this, &receiver] {
        receiver.withholds = false;
        pump_all();
      });
      break;
    case Kind::kWrong:
      receiver.wrong = true;
      after(trouble.span, [&receiver] { receiver.wrong = false; });
      break;
    case Kind::kDeaf:
      receiver.deaf = true;
      after(trouble.span, [&receiver] { receiver.deaf = false; });
      break;
    case Kind::kCut: {
      const std::uint32_t a = receiver.host();
      const std::uint32_t b = trouble.other == 0 ? 0 : receivers_[trouble.other - 1]->host();
      if (a == b) break;
      const std::pair link{std::min(a, b), std::max(a, b)};
      cuts_.insert(link);
      after(trouble.span, [this, link] {
        cuts_.erase(link);
        pump_all();
      });
      break;
    }
    case Kind::kRestart:
      restart(trouble.span);
      break;
  }
}

// ---- the run
// -------------------------------------------------------------------------------------

bool RelayWorld::all_there() const {
  return publisher_.lives() && published_ >= plan_.versions &&
         std::all_of(receivers_.begin(), receivers_.end(), [this](const auto& receiver) {
           const ImagePtr& has = receiver->weights();
           return receiver->alive() && has && has->is(publisher_.life(), publisher_.newest());
         });
}

void RelayWorld::run() {
  publisher_.begin(0);
  for (const auto& receiver : receivers_)
    after(core::Duration(rng_.next_below(50'000'000)), [&receiver] { receiver->begin(); });
  after(60ms, [this] { publish_next(); });
  for (const RelayTrouble& trouble : plan_.troubles)
    after(trouble.at, [this, trouble] { inject(trouble); });
  bool troubled = true;
  while (truth_.wrong().empty() && (troubled || !all_there())) {
    truth_.expect(time_.run_for(500ms, kEvents), "the relays do not come to rest");
    troubled =
        !plan_.troubles.empty() && time_.now() < core::TimePoint() + plan_.troubles.back().at;
    // Slow links take their time; only then must something arrive.
    const core::Duration slow = 2s * plan_.buckets * static_cast<int>(1 + plan_.troubles.size());
    truth_.expect(time_.now() - last_ < kProgress + slow || all_there(),
                  "a receiver has not got the newest version");
  }
  for (const auto& receiver : receivers_)
    receiver->kill();
  truth_.expect(time_.run_until_quiet(kEvents), "the relays do not come to rest at the end");
}

std::uint64_t RelayWorld::copies_max() const {
  std::uint64_t most = 0;
  for (const auto& [version, copies] : publisher_.copies())
    most = std::max(most, copies);
  return most;
}

}  // namespace troupe::sim
