SUMMARY = "Batches of variable-length data for training jobs, the programs of a small machine"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE;md5=3b83ef96387f14655fc854ddc3c6bd57"
SRC_URI = "git://git.example/batchwright;protocol=https;branch=main"
SRCREV = "${AUTOREV}"
S = "${WORKDIR}/git"
DEPENDS = "boost cli11 cppzmq flatbuffers flatbuffers-native fmt lmdb spdlog tomlplusplus zeromq"
inherit cmake
EXTRA_OECMAKE = "-DCMAKE_BUILD_TYPE=MinSizeRel -DBATCHWRIGHT_MINIMAL=ON \
    -DBATCHWRIGHT_FLATC=${STAGING_BINDIR_NATIVE}/flatc -DBATCHWRIGHT_ZMQ_PREFIX=${STAGING_DIR_HOST}${prefix}"
OECMAKE_TARGET_COMPILE = "batchwrightd batchwright"
do_install() {
    install -D -m 0755 -t ${D}${bindir} ${B}/bin/batchwrightd ${B}/bin/batchwright
}
