// Dials the door once to introduce itself, then once for every local connection.
#include "runtime/net/splice.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/carry.hpp"
#include "runtime/net/door_protocol.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/socket_folder.hpp"
#include "runtime/net/strand_scope.hpp"
#include "runtime/net/tls_context.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <utility>

namespace troupe::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using core::ErrorCode;

namespace {


// A connection to the door that a timer can cut at any stage.
struct Dialled {
  explicit Dialled(const async::Executor& executor) : socket(executor), resolver(executor) {}
  void cut() {
    late = true;
    boost::system::error_code ignored;
    resolver.cancel();
    socket.close(ignored);
    if (tls) tls->cut();
  }
  tcp::socket socket;  // until it becomes the stream's
  tcp::resolver resolver;
  std::optional<TlsStream> tls;
  bool late = false;
};

}  // namespace

struct Splice::Impl {
  Impl(async::IoThreads& io,
       std::string to_host,
       std::uint16_t to_port,
       DoorAuth given,
       std::string named,
       std::function<void(const std::string&)> called)
      : host(std::move(to_host)),
        port(to_port),
        auth(std::move(given)),
        service(std::move(named)),
        log(std::move(called)),
        work(io) {}

  std::string where() const { return "door " + host + ":" + std::to_string(port); }

  static async::task<core::Result<void>> dial(Impl* self, Dialled* dialled);
  static async::task<core::Result<std::string>> enter_door(Impl* self,
                                                           Dialled* dialled,
                                                           DoorErrand errand);
  static async::task<core::Result<std::string>> pass_door(Impl* self,
                                                          std::shared_ptr<Dialled> dialled,
                                                          DoorErrand errand,
                                                          core::Duration limit);
  static async::task<void> introduce(Impl* self,
                                     core::Duration limit,
                                     std::shared_ptr<std::promise<core::Result<std::string>>> out);
  static async::task<void> accept_all(Impl* self);
  static async::task<void> carry_one(Impl* self, std::shared_ptr<LocalSocket> local);

  const std::string host;
  const std::uint16_t port;
  const DoorAuth auth;
  const std::string service;
  const std::function<void(const std::string&)> log;
  async::SteadyTimers timers;
  StrandScope work;
  SslContextPtr context;
  std::optional<SocketFolder> folder;
  std::optional<stream_protocol::acceptor> acceptor;
  std::size_t connections = 0;
  std::string pass, path;
  bool stopped = false;
};

async::task<core::Result<void>> Splice::Impl::dial(Impl* self, Dialled* dialled) {
  boost::system::error_code not_an_address;
  const auto address = asio::ip::make_address(self->host, not_an_address);
  if (!not_an_address) {
    const tcp::endpoint endpoint(address, self->port);
    const auto [code] = co_await dialled->socket.async_connect(endpoint, kToken);
    if (code) co_return core::fail(ErrorCode::kPeerLost, "cannot connect: " + code.message());
  } else {
    const std::string port = std::to_string(self->port);
    auto [code, found] = co_await dialled->resolver.async_resolve(self->host, port, kToken);
    if (code) co_return core::fail(ErrorCode::kPeerLost, "cannot resolve: " + code.message());
    const auto [failed, endpoint] = co_await asio::async_connect(dialled->socket, found, kToken);
    if (failed) co_return core::fail(ErrorCode::kPeerLost, "cannot connect: " + failed.message());
  }
  set_peer_options(dialled->socket);
  co_return core::Result<void>();
}

async::task<core::Result<std::string>> Splice::Impl::enter_door(Impl* self,
                                                                Dialled* dialled,
                                                                DoorErrand errand) {
  TROUPE_CO_TRY(co_await dial(self, dialled));
  if (dialled->late) co_return core::fail(ErrorCode::kClosed, "closed");
  dialled->tls.emplace(std::move(dialled->socket), self->context.get(), TlsStream::Side::kClient);
  TlsStream* tls = &*dialled->tls;
  auto shaken = co_await tls->handshake();
  if (!shaken) {
    co_return core::fail(shaken.error().code,
                         shaken.error().message +
                             " (no door of this run, or one that refuses this address after "
                             "wrong proofs in the last minute)");
  }
  if (!self->auth.by_token()) TROUPE_CO_TRY(check_host_name(tls->native(), self->host));
  auto entered = co_await enter(tls, &self->auth, errand, self->service);
  co_return entered;
}

// `enter_door` within `limit`.
async::task<core::Result<std::string>> Splice::Impl::pass_door(Impl* self,
                                                               std::shared_ptr<Dialled> dialled,
                                                               DoorErrand errand,
                                                               core::Duration limit) {
  auto executor = co_await asio::this_coro::executor;
  std::function<void()> cut = [dialled] { dialled->cut(); };
  const async::Timer timer = self->timers.arm(executor, self->timers.now() + limit, std::move(cut));
  auto entered = co_await enter_door(self, dialled.get(), errand);
  if (entered) co_return entered;
  if (dialled->late) {
    const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
    co_return core::fail(ErrorCode::kDeadline,
                         self->where() + ": not let in within " + std::to_string(limit_ms) + " ms");
  }
  co_return core::fail(entered.error().within(self->where()));
}

async::task<void> Splice::Impl::introduce(
    Impl* self,
    core::Duration limit,
    std::shared_ptr<std::promise<core::Result<std::string>>> out) {
  auto dialled = std::make_shared<Dialled>(self->work.executor());
  auto entered = co_await pass_door(self, std::move(dialled), DoorErrand::kIntroduce, limit);
  out->set_value(std::move(entered));
}

async::task<void> Splice::Impl::accept_all(Impl* self) {
  for (;;) {
    stream_protocol::socket socket(self->work.executor());
    const auto [code] = co_await self->acceptor->async_accept(socket, kToken);
    if (self->work.scope().cancelled()) co_return;
    if (code == asio::error::connection_aborted) continue;
    if (code) {
      if (self->log) self->log("splice: cannot accept: " + code.message());
      co_await async::sleep_for(self->timers, limits::kAcceptPause);
      continue;
    }
    if (!same_user(socket.native_handle())) continue;
    if (self->connections >= limits::kDoorConnections_max) {
      if (self->log) self->log("splice: too many connections at once");
      continue;
    }
    ++self->connections;
    auto local = std::make_shared<LocalSocket>(std::move(socket));
    self->work.scope().spawn("", carry_one(self, std::move(local)));
  }
}

async::task<void> Splice::Impl::carry_one(Impl* self, std::shared_ptr<LocalSocket> local) {
  struct Counted {
    std::size_t& count;
    ~Counted() { --count; }
  };
  const Counted counted{self->connections};
  auto dialled = std::make_shared<Dialled>(self->work.executor());
  auto entered = co_await pass_door(self, dialled, DoorErrand::kCarry, limits::kSpliceConnect);
  if (self->work.scope().cancelled()) co_return;
  if (!entered) {
    if (self->log) self->log(entered.error().message);
    co_return;
  }
  static_cast<void>(co_await carry(&*dialled->tls, local.get()));
}

core::Result<std::unique_ptr<Splice>> Splice::open(async::IoThreads& io,
                                                   const std::string& host,
                                                   std::uint16_t port,
                                                   DoorAuth auth,
                                                   const std::string& service,
                                                   core::Duration deadline,
                                                   std::function<void(const std::string&)> log) {
  TROUPE_TRY_ASSIGN(context, make_splice_context(auth));
  std::unique_ptr<Splice> splice(
      new Splice(std::make_unique<Impl>(io, host, port, std::move(auth), service, std::move(log))));
  Impl* impl = splice->impl_.get();
  impl->context = std::move(context);
  auto out = std::make_shared<std::promise<core::Result<std::string>>>();
  auto entered = out->get_future();
  impl->work.start(Impl::introduce(impl, deadline, out));
  TROUPE_TRY_ASSIGN(pass, entered.get());
  impl->pass = std::move(pass);
  TROUPE_TRY_ASSIGN(folder, SocketFolder::make());
  impl->path = folder.socket("splice");
  TROUPE_TRY_ASSIGN(listener, listen_unix(impl->path));
  impl->folder.emplace(std::move(folder));
  impl->acceptor.emplace(impl->work.executor(), stream_protocol(), listener.release());
  impl->work.start(Impl::accept_all(impl));
  return {std::move(splice)};
}

Splice::Splice(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Splice::~Splice() {
  stop();
}

const std::string& Splice::path() const noexcept {
  return impl_->path;
}
const std::string& Splice::pass() const noexcept {
  return impl_->pass;
}

void Splice::stop() {
  if (std::exchange(impl_->stopped, true)) return;
  impl_->work.stop([this] {
    boost::system::error_code ignored;
    if (impl_->acceptor) impl_->acceptor->close(ignored);
  });
}

}  // namespace troupe::net
