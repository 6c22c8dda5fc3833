# Every library that Ebbgate builds on, found in one place. CMake packages first; where a distribution ships none (or
# a broken one), pkg-config. Targets used elsewhere: the imported ones named in the comments.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)                   # OpenSSL::SSL OpenSSL::Crypto

# gRPC 1.60 and later ship a Protobuf with a CMake package that must be found first, so that both agree.
find_package(Protobuf CONFIG QUIET)
if(NOT TARGET protobuf::libprotobuf)
  find_package(Protobuf REQUIRED)                # protobuf::libprotobuf protobuf::protoc
endif()
find_package(absl CONFIG REQUIRED)               # absl::...
find_package(gRPC CONFIG QUIET)
if(TARGET gRPC::grpc++)
  set(EBBGATE_GRPC gRPC::grpc++)
else()
  pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)
  set(EBBGATE_GRPC PkgConfig::GRPCPP)
endif()
if(TARGET gRPC::grpc_cpp_plugin)
  set(EBBGATE_GRPC_PLUGIN $<TARGET_FILE:gRPC::grpc_cpp_plugin>)
else()
  find_program(EBBGATE_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
endif()

find_package(spdlog CONFIG REQUIRED)             # spdlog::spdlog
find_package(prometheus-cpp CONFIG REQUIRED)     # prometheus-cpp::core
find_package(yaml-cpp CONFIG REQUIRED)           # yaml-cpp
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
