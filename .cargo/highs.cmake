# Read before HiGHS is configured. Its build takes the type `Release` whatever the profile; at -O1, which tests and the demo do
# with, it takes less than half the time of -O3.
if("$ENV{OPT_LEVEL}" STREQUAL "1")
    set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "Flags of the profile dev")
    set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "Flags of the profile dev")
endif()
