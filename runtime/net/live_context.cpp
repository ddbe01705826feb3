#include "runtime/net/live_context.hpp"

#include "runtime/net/limits.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe::net {
namespace {

std::time_t seconds_of(std::chrono::milliseconds span) {
  return static_cast<std::time_t>(std::chrono::duration_cast<std::chrono::seconds>(span).count());
}

std::time_t end_of_one(const X509* certificate) {
  std::tm time{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) return 0;
  return ::timegm(&time);
}

// The earliest end in the chain from the context's own certificate to its CA.
std::time_t end_of_chain(SSL_CTX* context) {
  X509* const own = SSL_CTX_get0_certificate(context);
  std::time_t end = end_of_one(own);
  const std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>> check(
      X509_STORE_CTX_new());
  if (check &&
      X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), own, nullptr) == 1 &&
      X509_verify_cert(check.get()) == 1) {
    const STACK_OF(X509)* const chain = X509_STORE_CTX_get0_chain(check.get());
    for (int i = 0; i < sk_X509_num(chain); ++i)
      end = std::min(end, end_of_one(sk_X509_value(chain, i)));
  }
  ERR_clear_error();
  return end;
}

std::string day_of(std::time_t time) {
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

}  // namespace

LiveContext::LiveContext(GatewayAuth auth, Side side, Log log)
    : auth_(std::move(auth)), side_(side), log_(std::move(log)) {}

core::Result<LiveContext> LiveContext::open(GatewayAuth auth, Side side, Log log) {
  LiveContext made(std::move(auth), side, std::move(log));
  TROUPE_TRY(made.read());
  return {std::move(made)};
}

LiveContext::Stamps LiveContext::stamps() const {
  Stamps found{};
  const std::filesystem::path* const files[] = {&auth_.ca, &auth_.certificate, &auth_.key};
  for (std::size_t i = 0; i < found.size(); ++i) {
    struct stat facts {};
    if (files[i]->empty() || ::stat(files[i]->c_str(), &facts) != 0) continue;
    found[i] = {static_cast<std::uint64_t>(facts.st_dev), static_cast<std::uint64_t>(facts.st_ino),
                static_cast<std::uint64_t>(facts.st_size),
                static_cast<std::uint64_t>(facts.st_mtim.tv_sec),
                static_cast<std::uint64_t>(facts.st_mtim.tv_nsec)};
  }
  return found;
}

// The stamps are taken first: a change while the files are read is seen at the next look.
core::Result<void> LiveContext::read() {
  seen_ = stamps();
  auto made = side_ == Side::kGateway ? make_gateway_context(auth_) : make_tunnel_context(auth_);
  if (!made) return made.failure();
  context_ = std::move(*made);
  end_ = auth_.by_token() ? 0 : end_of_chain(context_.get());
  warned_.reset();
  return {};
}

SSL_CTX* LiveContext::current(std::time_t now) {
  if (auth_.by_token()) return context_.get();
  if (stamps() != seen_) {
    const auto again = read();
    say(again ? "the certificates were read again; " + auth_.certificate.string() +
                    " holds until " + day_of(end_)
              : "the certificates have changed and cannot be used; the old ones stay: " +
                    again.error().message);
  }
  warn(now);
  return context_.get();
}

void LiveContext::warn(std::time_t now) {
  if (end_ - now > seconds_of(limits::kCertificateWarning)) return;
  if (warned_ && now - *warned_ < seconds_of(limits::kCertificateWarnEvery)) return;
  warned_ = now;
  const std::string when = day_of(end_);
  say("the certificate " + auth_.certificate.string() + " or its CA " +
      (end_ > now ? "expires on " + when : "expired on " + when) +
      ", and then no connection can be made; `troupe ca init` makes new ones, which are read "
      "without a restart");
}

void LiveContext::say(const std::string& what) const {
  if (log_) log_(what);
}

}  // namespace troupe::net
