# The system libraries that rooms may link, each as a target troupe::<name>. `./dev setup` installs
# them.
#
#   troupe::asio      Boost.Asio and Beast (headers), threads
#   troupe::caf       CAF core + io + openssl; runtime/cluster/caf only
#   troupe::json      nlohmann-json         troupe::yaml    yaml-cpp
#   troupe::cli       CLI11                 troupe::spdlog  spdlog; runtime/observe only
#   troupe::openssl   libssl, libcrypto     troupe::cbor    libcbor; runtime/parse only
#   troupe::gtest     GoogleTest + GoogleMock, with main
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED CONFIG)
find_package(OpenSSL 3 REQUIRED)
find_package(CAF 0.17.6 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(GTest 1.12 REQUIRED)

function(_troupe_alias name)
  add_library(troupe_dep_${name} INTERFACE)
  target_link_libraries(troupe_dep_${name} INTERFACE ${ARGN})
  add_library(troupe::${name} ALIAS troupe_dep_${name})
endfunction()

_troupe_alias(asio Boost::headers Threads::Threads)
target_compile_definitions(troupe_dep_asio INTERFACE BOOST_ASIO_NO_DEPRECATED)
_troupe_alias(caf CAF::openssl)
_troupe_alias(json nlohmann_json::nlohmann_json)
_troupe_alias(yaml yaml-cpp)
_troupe_alias(cli CLI11::CLI11)
_troupe_alias(spdlog spdlog::spdlog)
_troupe_alias(cbor cbor)
_troupe_alias(openssl OpenSSL::SSL OpenSSL::Crypto)
_troupe_alias(gtest GTest::gmock GTest::gtest_main Threads::Threads)
