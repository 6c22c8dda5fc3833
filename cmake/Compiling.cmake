# How everything here is compiled, and the two functions by which folders declare their targets.

add_library(ebbgate_options INTERFACE)
target_compile_options(ebbgate_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # -Wthread-safety holds every ABSL_GUARDED_BY to its word.
  target_compile_options(ebbgate_options INTERFACE -Wthread-safety)
endif()
if(EBBGATE_SANITIZE)
  add_compile_options(-fsanitize=${EBBGATE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EBBGATE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC's manual: sanitizers make this warning see what is not there.
    target_compile_options(ebbgate_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(EBBGATE_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
if(EBBGATE_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers carry time stamps; ccache must be told that these do not matter.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

# ebbgate_library(NAME SOURCES... DEPENDS...): one folder's target. Headers are included from the top, "limiter/limiter.h".
function(ebbgate_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_DEPENDS} PRIVATE ebbgate_options)
endfunction()

# ebbgate_program(NAME SOURCES... DEPENDS...): an executable in build/<preset>/bin.
function(ebbgate_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} ebbgate_options)
  if(EBBGATE_SANITIZE)
    # A reload takes more locks at once than the thread sanitizer's deadlock detector can follow.
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/sanitizer_options.cc)
  endif()
endfunction()
