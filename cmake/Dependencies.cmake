# The libraries of others, as targets.
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2 REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(Threads REQUIRED)
find_package(benchmark QUIET)

# Static and compiled once; see the source.
add_library(dsplan_fmt STATIC "${PROJECT_SOURCE_DIR}/cmake/compiled_fmt.cpp")
get_target_property(dsplan_fmt_headers fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(dsplan_fmt SYSTEM PUBLIC ${dsplan_fmt_headers})

# toml++ is header-only here; it costs 6 s of compile time, so one source of a room includes it.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
find_path(VALIJSON_INCLUDE_DIR valijson/validator.hpp REQUIRED)

# LLVM's containers, from the static support library: the shared LLVM costs 15 ms at each start.
find_package(LLVM 19.1 REQUIRED CONFIG)
add_library(dsplan_llvm_adt INTERFACE)
target_include_directories(dsplan_llvm_adt SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(dsplan_llvm_adt INTERFACE LLVMSupport)

if(DSPLAN_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

if(DSPLAN_RUNTIME)
  find_package(ZLIB REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(LibTorch REQUIRED)
endif()
