BATCHWRIGHT_VERSION = main
BATCHWRIGHT_SITE = https://git.example/batchwright
BATCHWRIGHT_SITE_METHOD = git
BATCHWRIGHT_LICENSE = Apache-2.0
BATCHWRIGHT_LICENSE_FILES = LICENSE
BATCHWRIGHT_SUPPORTS_IN_SOURCE_BUILD = NO
BATCHWRIGHT_DEPENDENCIES = boost cli11 cppzmq flatbuffers fmt host-flatbuffers lmdb spdlog tomlplusplus zeromq
BATCHWRIGHT_CONF_OPTS = -DCMAKE_BUILD_TYPE=MinSizeRel -DBATCHWRIGHT_MINIMAL=ON \
	-DBATCHWRIGHT_FLATC=$(HOST_DIR)/bin/flatc -DBATCHWRIGHT_ZMQ_PREFIX=$(STAGING_DIR)/usr

define BATCHWRIGHT_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 -t $(TARGET_DIR)/usr/bin $(@D)/buildroot-build/bin/batchwrightd \
		$(@D)/buildroot-build/bin/batchwright
endef

$(eval $(cmake-package))
